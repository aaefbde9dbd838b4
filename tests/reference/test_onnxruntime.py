"""Every ONNX operator that is known: the integer reference against ONNX Runtime, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import I8, SourceModel
from accelsim.importer.onnx import parse_onnx
from accelsim.quantize.onnx import quantize_onnx
from accelsim.reference import Reference, build
from accelsim.reference.onnxruntime import Form, OrtGolden, build_onnxruntime, saturation
from tests.quantize.onnx_branches import BRANCHES, IMAGE, ROWS, whole

EXACT = (
    *("QLinearConv", "QLinearConv_groups", "QLinearConv_depthwise", "QLinearMatMul", "QGemm"),
    *("Conv", "Conv_dilated", "MatMul", "Gemm", "MaxPool", "MaxPool_of_integers"),
    *("GlobalMaxPool", "Transpose", "Transpose_of_integers", "Slice_of_integers", "Concat"),
    *("Reshape", "Gather", "Tile", "DepthToSpace", "SpaceToDepth", "Resize_nearest", "Split"),
)


@dataclass(frozen=True)
class Run:
    """One model of all branches, run by the integer reference."""

    reference: Reference
    golden: OrtGolden
    given: dict[str, np.ndarray]
    values: dict[str, I8]

    def layer(self, branch: str) -> Any:
        """The reference's layer of a branch."""
        found = [one for one in self.reference.layers if one.name.startswith(branch)]
        return next(one for one in found if one.name in (branch, f"{branch}/q"))


@pytest.fixture(scope="module", params=[np.int8, np.uint8], ids=["int8", "uint8"])
def run(request: pytest.FixtureRequest) -> Run:
    """All branches at once."""
    found = parse_onnx(whole(tuple(BRANCHES), request.param).SerializeToString(), "all.onnx")
    source = SourceModel("all.onnx", found, (), ("image", "rows"), already_quantized=True)
    quantized = quantize_onnx(source)
    reference = build(quantized, optimization=0)
    rng = np.random.default_rng(3)
    given = {
        "image": (1.2 * rng.standard_normal(IMAGE)).astype(np.float32),
        "rows": (2 * rng.standard_normal(ROWS)).astype(np.float32),
    }
    values = reference.run(reference.quantize_inputs(given), given)
    return Run(reference, build_onnxruntime(quantized, reference.network), given, values)


@pytest.mark.parametrize("branch", [name.replace(" ", "_") for name in BRANCHES])
def test_layer_equals_onnx_runtime(run: Run, branch: str) -> None:
    layer = run.layer(branch)
    inputs = tuple(run.values[name] for name in layer.inputs)
    exact, own = run.values[layer.output], run.golden.run_layer(layer.name, inputs)
    difference = int(np.abs(exact.astype(np.int16) - own).max())
    assert len(np.unique(exact)) > 1
    if branch in EXACT:
        assert difference == 0
        assert run.golden.bound(layer.name, inputs, exact, own) is None
    else:
        bound = run.golden.bound(layer.name, inputs, exact, own)
        assert difference == 0 or (bound is not None and difference <= bound)


def test_file_as_a_whole_is_near(run: Run) -> None:
    outputs = run.reference.dequantize_outputs(run.values, run.given)
    expected = run.golden.outputs(run.given)
    assert expected is not None and len(outputs) == len(expected) == len(BRANCHES)
    for name, one, other in zip(BRANCHES, outputs, expected, strict=True):
        assert one.shape == other.shape, name
        assert np.abs(one - other).max() <= 1.01 * BRANCHES[name].scale, name


def test_integer_form_of_the_file_has_the_layers_own_integers(run: Run) -> None:
    _, tensors = run.golden.integer_whole(run.given)
    for branch in EXACT:
        output = run.layer(branch).output
        np.testing.assert_array_equal(tensors[output], run.values[output], err_msg=branch)


def test_processor_whose_products_saturate_is_not_believed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saturation, "saturates", lambda: True)
    monkeypatch.setattr(saturation, "SAFE", 30)
    golden = OrtGolden(
        run.golden.quantized, run.golden.network, run.golden.model, run.golden.stored
    )
    form = golden.form("Conv")
    assert isinstance(form, Form) and form.operator == ""  # its islands in float32 instead
    assert not golden.covers("QLinearConv")
    assert "saturate" in golden.missing()["QLinearConv"]
    assert golden.covers("QLinearAdd")
