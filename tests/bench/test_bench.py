"""The benchmark measures the layers it names, and writes what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accelsim.spec.config import CONFIGS, Config
from bench.__main__ import main
from bench.bound import least_cycles
from bench.measure import count_cycles, measure_layer
from bench.shapes import DEPTHWISE, MOBILENETV2, RESNET18, Shape


def test_resnet18_has_its_known_number_of_products() -> None:
    assert sum(shape.macs * shape.times for shape in RESNET18) == 1_814_073_344
    assert sum(shape.times for shape in RESNET18) == 21


def test_im2col_product_has_the_products_of_the_layer() -> None:
    for shape in (*RESNET18, *MOBILENETV2):
        assert np.prod(shape.product, dtype=np.int64) == shape.macs, shape.name


def test_small_layer_is_measured_in_every_respect() -> None:
    shape = Shape("small", 5, 9, 8, 3, 1, 1)
    found = measure_layer(np.random.default_rng(1), shape, CONFIGS["edge8"], 1)
    assert 0 < found.utilization < 1
    assert found.cycles > shape.macs / 64
    assert min(found.sim_seconds, found.first_seconds, found.compile_seconds) > 0


def test_quick_run_prints_and_writes_ratios(tmp_path: Path) -> None:
    file = tmp_path / "new" / "bench.json"
    command = [sys.executable, "-m", "bench", "--quick", "--no-rtl", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text(encoding="utf-8"))
    totals = report["ResNet-18 @224"]["totals"]
    expected = totals["sim_seconds"] / totals["blas_seconds"]
    assert totals["sim_over_blas"] == pytest.approx(expected)
    assert f"{totals['sim_over_blas']:.1f}×" in done.stdout
    assert {layer["shape"]["name"] for layer in report["MobileNetV2 @224"]["layers"]}
    assert all(row["products"] <= row["most"] for row in report["depthwise"])


def test_three_channels_are_packed_and_depthwise_layers_reach_their_goal() -> None:
    config = CONFIGS["base16"]
    first, deep = Shape("first", 3, 16, 16, 3, 1, 1), Shape("deep", 16, 16, 64, 3, 1, 1, 1, True)
    found = [measure_layer(np.random.default_rng(1), s, config, 1) for s in (first, deep)]
    assert [layer.packed_lanes for layer in found] == [27, 0]
    assert found[1].products >= 2 * config.lanes


SUSTAINED = (
    ("base16", ("depthwise 64 @56", "depthwise 64 @28", "depthwise 64 @14", "depthwise 512 @7")),
    ("wide32", ("depthwise 64 @56", "depthwise 64 @28", "depthwise 128 @14")),
    ("edge8", ("depthwise 64 @56", "depthwise 128 @28", "depthwise 64 @14", "depthwise 512 @7")),
)


@pytest.mark.parametrize(("config_name", "names"), SUSTAINED)
def test_depthwise_layers_of_networks_sustain_two_products_a_lane(
    config_name: str, names: tuple[str, ...]
) -> None:
    config, rng = CONFIGS[config_name], np.random.default_rng(1)
    for shape in (s for s in DEPTHWISE if s.name in names):
        cycles = count_cycles(rng, shape, config)
        assert shape.macs / cycles >= 2 * config.lanes, shape.name
        assert cycles >= least_cycles(shape, config), shape.name


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda c: c.name)
def test_small_depthwise_layer_takes_little_more_than_its_least_cycles(config: Config) -> None:
    shape = next(s for s in DEPTHWISE if s.name == "depthwise 64 @7")
    least = least_cycles(shape, config)
    assert shape.macs / least < 2 * config.lanes
    assert least <= count_cycles(np.random.default_rng(1), shape, config) < 1.2 * least


def test_unknown_configuration_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", "edge9"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("bench: unknown configuration 'edge9'") and error.count("\n") == 1
