"""Facts about `accelsim advise` from the command line."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from accelsim.quantize import qnnpack_engine, quantize
from tests.cli.invocation import invoke

SCRIPT = """
import numpy as np, torch
from torch import nn
from accelsim.artifacts import SourceModel, Training

def make():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)).eval()
    rng = np.random.default_rng(0)
    labels = np.arange(64) % 4
    x = rng.normal(size=(64, 3, 8, 8)).astype(np.float32) + labels[:, None, None, None]
    x = x.astype(np.float32)
    return SourceModel("m", net, (x[:1],), ("x",), calibration=(x,), test_inputs=x,
        test_labels=labels, training=Training(x, labels, nn.functional.cross_entropy))

def plain():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval(), torch.randn(2, 3, 8, 8)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def advised(script: Path, *words: str) -> dict[str, Any]:
    """The JSON of a run that must succeed."""
    result = invoke(script.parent, "advise", f"{script}:make", "--json", "a.json", "-q", *words)
    assert result.code == 0, result.err + result.out
    found: dict[str, Any] = json.loads((script.parent / "a.json").read_text(encoding="utf-8"))
    return found


def test_findings_name_layers_shares_and_replacements(script: Path) -> None:
    found = advised(script)
    assert found["schema"] == "accelsim.advise/1"
    by_layer = {one["layer"]: one for one in found["findings"]}
    assert {"1", "3"} <= by_layer.keys()
    assert by_layer["1"]["rules"] == ["silu-relu6", "silu-hardswish"]
    cycles = found["costs"]["cycles"]
    assert sum(found["costs"]["layer_cycles"].values()) == cycles - 1  # the END takes one
    assert found["costs"]["macs"] == 64 * (27 * 16 + 144 * 16) + 64
    assert found["change"] is None


def test_a_replacement_is_trained_measured_and_written(script: Path) -> None:
    found = advised(script, "--apply", "silu-relu6", "--epochs", "8", "--out", "o")
    change = found["change"]
    assert change["replaced"] == ["1: silu-relu6", "3: silu-relu6"]
    assert change["trained_epochs"] == 8
    assert change["after"]["cycles"] < change["before"]["cycles"]
    assert change["after"]["dram_bytes"] < change["before"]["dram_bytes"]
    assert set(change["accuracy"]) == {
        *("float before", "int8 before", "float replaced", "float trained", "int8 after"),
    }
    _check_accuracy(script, change)
    again = invoke(script.parent, "advise", "o/model.pt2", "-q")
    assert again.code == 0, again.err
    assert "silu" not in again.out


def _check_accuracy(script: Path, change: dict[str, Any]) -> None:
    """Each accuracy, and the difference of outputs, by an evaluation of our own."""
    names: dict[str, Any] = {}
    exec(script.read_text(encoding="utf-8"), names)
    source = names["make"]()
    x, labels = torch.from_numpy(source.test_inputs), source.test_labels
    replaced = copy.deepcopy(source.float_module)
    replaced[1] = replaced[3] = nn.ReLU6()
    trained = torch.export.load(script.parent / change["written"]).module()
    with torch.no_grad(), qnnpack_engine():
        before, after = source.float_module(x), replaced(x)
        final = torch.cat([trained(one) for one in x.split(1)])  # the file's own batch
        int8 = quantize(source).torch_int8(x)
    for name, scores in (
        ("float before", before),
        ("int8 before", int8),
        ("float replaced", after),
        ("float trained", final),
    ):
        share = float((scores.numpy().argmax(1) == labels).mean())
        assert change["accuracy"][name]["top1"] == share, name
    accuracy = {name: numbers["top1"] for name, numbers in change["accuracy"].items()}
    assert accuracy["float trained"] > accuracy["float before"]
    assert accuracy["int8 after"] > accuracy["int8 before"]
    noise = float(((after - before).double() ** 2).sum())
    ratio = 10 * math.log10(float((before.double() ** 2).sum()) / noise)
    assert change["snr_db"] == pytest.approx(ratio, abs=1e-3)


def test_nothing_to_advise_is_said(script: Path) -> None:
    result = invoke(script.parent, "advise", f"{script}:plain", "-q")
    assert result.code == 0
    assert "MACs, 0 layers on the host" in result.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--apply", "nothing"], "there is no replacement 'nothing'"),
        (["--data", "none.npz"], "none.npz"),
        (["--metric", "top9"], "metric 'top9'"),
        (["--config", "none"], "none"),
    ],
)
def test_misuse_ends_in_one_sentence(script: Path, words: list[str], sentence: str) -> None:
    if words[0] == "--metric":
        words = [*words, "--apply", "silu-relu6"]
    result = invoke(script.parent, "advise", f"{script}:make", "-q", *words)
    assert result.code == 2
    assert sentence in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--apply", "silu-relu7"), "there is no replacement 'silu-relu7'"),
        (("--out", "FILE"), "give --apply NAME"),
        (("--apply", "silu-relu6", "--out", "FILE"), "choose another --out"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_work(
    script: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    file = script.parent / "taken"
    file.touch()
    given = [str(file) if one == "FILE" else one for one in arguments]
    result = invoke(script.parent, "advise", f"{script}:make", *given)
    assert result.code == 2
    assert sentence in " ".join(result.err.split())
    assert "loading" not in result.err


def test_the_changed_network_never_overwrites_the_model(tmp_path: Path) -> None:
    given = tmp_path / "model.pt2"
    given.write_bytes(b"mine")
    result = invoke(tmp_path, "advise", str(given), "--apply", "silu-relu6", "--out", str(tmp_path))
    assert result.code == 2
    assert "overwrite the model" in " ".join(result.err.split())
    assert given.read_bytes() == b"mine"
