"""Blocks of real networks, from PyTorch to simulator and RTL: operators work together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.invocation import invoke, report_of

BLOCKS = Path(__file__).parents[2] / "examples" / "blocks.py"
OPERATORS = {
    "squeeze_excite": {
        *("conv2d", "depthwise_conv2d", "hard_swish", "hard_sigmoid", "avg_pool2d"),
        *("multiply", "add"),
    },
    "shuffle": {"conv2d", "depthwise_conv2d", "split"},  # its concat is part of the shuffle
    "neck": {"conv2d", "silu", "add", "concat", "max_pool2d"},  # and its upsampling of a concat
    "fire": {"conv2d", "concat"},
    "unet": {"conv2d", "max_pool2d", "conv_transpose2d", "concat", "batch_norm"},
    "keywords": {"conv2d", "avg_pool2d", "linear"},
    "transformer": {"linear", "matmul", "lookup", "softmax", "layer_norm", "gelu", "add"},
    "super_resolution": {"conv2d", "prelu", "leakyrelu", "elu"},
}
MOVES = {"permute", "transpose", "reshape", "reshape_copy", "pixel_shuffle"}
# PyTorch's own kernels have other integers, or are not what the layer means.
BOUNDED = {
    *("avg_pool2d", "prelu", "batch_norm", "matmul", "softmax", "layer_norm"),
    *("lookup", "silu", "gelu", "elu"),
}


def verified(folder: Path, block: str, *backends: str) -> dict[str, Any]:
    """The report of one block, which must have passed."""
    chosen = [word for name in backends for word in ("--backend", name)]
    result = invoke(folder, "verify", f"{BLOCKS}:{block}", *chosen, "--out", "r", "-q")
    assert result.code == 0, result.err + result.out
    return report_of(folder / "r")


def check(report: dict[str, Any], backends: set[str]) -> None:
    """Every layer ran on the NPU, and equals every golden that gates it."""
    assert [one["name"] for one in report["layers"] if one["placement"] == "host"] == []
    for layer in report["layers"]:
        gates = [one for one in layer["compare"] if one["gate"]]
        assert {one["actual"] for one in gates} == backends, layer["name"]
        for one in gates:
            within = one["golden"] == "framework" and layer["op"] in BOUNDED and one["bound"] == 1
            allowed = ("equal", "within") if within else ("equal",)
            assert one["elements"] and one["status"] in allowed, (layer["name"], one)


@pytest.mark.parametrize("block", OPERATORS)
def test_every_layer_of_a_block_runs_on_the_simulator_as_its_goldens_say(
    block: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = verified(tmp_path, block, "sim")
    check(report, {"sim"})
    assert "SystemLib" not in capfd.readouterr().err  # TVM's word on a library replaced by another
    assert {layer["op"] for layer in report["layers"]} - MOVES == OPERATORS[block]


@pytest.mark.rtl
def test_a_transformer_runs_on_the_rtl_as_on_the_simulator(tmp_path: Path) -> None:
    report = verified(tmp_path, "transformer", "sim", "rtl")
    check(report, {"sim", "rtl"})
    assert all(layer["cycles"]["sim"] == layer["cycles"]["rtl"] for layer in report["layers"])
