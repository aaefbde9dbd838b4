"""The user's names of inputs, from a float file to the files that are written and to reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from accelsim.importer import load_model
from accelsim.importer.exported import from_program
from accelsim.importer.input_names import input_names, keep_inputs
from tests.cli.invocation import invoke
from tests.importer.onnx_files import FLOAT, model, node

RNG = np.random.default_rng(5)
NAMES = ("Input3", "Other.Image:0/π")
SHAPE = (1, 4, 6, 6)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network of two inputs in float, and what `accelsim quantize` makes of it."""
    folder = tmp_path_factory.mktemp("names")
    one, other = NAMES
    nodes = [
        node("Conv", f"{one} w", "c", "Stem"),
        node("Add", f"c {other}", "y", "Sum"),
    ]
    weights = {"w": RNG.normal(size=(4, 4, 1, 1)).astype(np.float32)}
    proto = model(nodes, weights, {one: (FLOAT, SHAPE), other: (FLOAT, SHAPE)}, ["y"])
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    samples = {name: RNG.normal(size=(8, *SHAPE[1:])).astype(np.float32) for name in NAMES}
    np.savez(folder / "data.npz", **samples)
    np.savez(folder / "one.npz", **{name: values[:1] for name, values in samples.items()})
    words = ("--data", "data.npz", "--calibration", "minmax", "--no-sensitivity", "--out", "q")
    result = invoke(folder, "quantize", "net.onnx", *words, "-q")
    assert result.code == 0, result.err + result.out
    return folder


def test_written_files_have_the_users_names_of_inputs(written: Path) -> None:
    assert load_model(str(written / "q" / "model.pt2")).input_names == NAMES
    graph = onnx.load(str(written / "q" / "model.onnx")).graph
    assert tuple(one.name for one in graph.input) == NAMES


@pytest.mark.parametrize("file", ["model.pt2", "model.onnx"])
def test_samples_under_the_users_names_are_verified_and_reported(written: Path, file: str) -> None:
    words = ("--input", "one.npz", "--backend", "sim", "--out", f"r_{file}", "-q")
    result = invoke(written, "verify", f"q/{file}", *words)
    assert result.code == 0, result.err + result.out
    stored = np.load(written / f"r_{file}" / "inputs.npz")
    assert set(NAMES) <= set(stored.files)


def test_the_report_of_quantization_has_the_users_names(written: Path) -> None:
    report = json.loads((written / "q" / "model.json").read_text(encoding="utf-8"))
    layers = [one["name"] for one in report["layers"]]
    assert layers == [*NAMES, "Stem", "Sum"]


def test_another_name_is_refused_with_those_that_there_are(written: Path) -> None:
    np.savez(written / "wrong.npz", input3=np.zeros(SHAPE, np.float32))
    result = invoke(written, "verify", "q/model.pt2", "--input", "wrong.npz", "--out", "r_wrong")
    assert result.code == 2
    assert "Input3" in result.err


class Doubled(torch.nn.Module):
    """A module whose argument has a capital letter."""

    def forward(self, Image: torch.Tensor) -> torch.Tensor:
        return Image * 2


def test_names_in_a_program_count_only_where_each_input_has_one() -> None:
    program = torch.export.export(Doubled(), (torch.ones(2),))
    assert input_names(program) == ("image",)
    keep_inputs(program, ("Image",))
    assert input_names(program) == ("Image",)
    assert from_program(program, "doubled").input_names == ("Image",)
    keep_inputs(program, ("Image", "Image"))
    assert input_names(program) == ("image",)
