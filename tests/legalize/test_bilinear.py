"""Whole weights of bilinear resizes: PyTorch's and LiteRT's kernels say what they must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tvm import relax

from accelsim.artifacts import Interpolation, Resize2d
from accelsim.legalize import legalize_module
from accelsim.legalize.bilinear import exact_interpolation, tflite_interpolation
from accelsim.legalize.operators import resize
from accelsim.ops.operators import resize as cases
from accelsim.partition import partition, regions_of
from accelsim.peers import bilinear as peers
from accelsim.peers.litert_model import TfliteTensor, constant, tflite_model, tflite_outputs
from accelsim.reference.operators import resize as reference
from tests.legalize.test_rows_refused import reasons
from tests.reference.qdq import QdqModule

op = relax.op
SIZES = [(1, 1), (1, 7), (2, 4), (5, 10), (5, 15), (4, 6), (7, 10), (9, 4), (8, 2), (12, 1), (6, 6)]


def dense(line: Interpolation, size: int) -> NDArray[np.float64]:
    """(outputs, inputs) real weights."""
    result = np.zeros((len(line.first), size + 1))
    for tap in (0, 1):
        np.add.at(result, (np.arange(len(line.first)), line.first + tap), line.weight[:, tap])
    assert not result[:, size].any()
    return result[:, :size] / line.total


def pytorch(size: int, target: int, aligned: bool) -> NDArray[np.float64]:
    """The same of its float64 kernel, by unit vectors."""
    units = torch.eye(size, dtype=torch.float64)[None]
    found = torch.nn.functional.interpolate(
        units, size=target, mode="linear", align_corners=aligned
    )
    return found[0].numpy().T


@pytest.mark.parametrize(("size", "target"), SIZES)
@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "pytorch_half_pixel"])
def test_exact_weights_are_those_of_pytorch(size: int, target: int, mode: str) -> None:
    if mode == "pytorch_half_pixel" and target == 1:
        expected = np.eye(size)[:1]  # ONNX: the first pixel
    else:
        expected = pytorch(size, target, mode == "align_corners")
    line = exact_interpolation(size, target, mode)
    assert isinstance(line, Interpolation)
    np.testing.assert_allclose(dense(line, size), expected, atol=1e-12)
    assert (line.weight.sum(1) == line.total).all() and (line.weight >= 0).all()


@pytest.mark.parametrize(("size", "target"), SIZES)
def test_asymmetric_coordinates_are_whole_quotients(size: int, target: int) -> None:
    line = exact_interpolation(size, target, "asymmetric")
    assert isinstance(line, Interpolation)
    places = np.minimum(np.arange(target) * size / target, size - 1)
    np.testing.assert_allclose(dense(line, size) @ np.arange(size), places, atol=1e-12)


@pytest.mark.parametrize(("size", "target"), SIZES)
@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
def test_weights_of_tflite_give_what_litert_computes(size: int, target: int, mode: str) -> None:
    rng = np.random.default_rng([size, target])
    x = rng.integers(-128, 128, (1, size, 1, 500)).astype(np.int8)
    model = tflite_model(
        "RESIZE_BILINEAR",
        [TfliteTensor(x.shape, (0.5,), 3), constant((target, 1))],
        [TfliteTensor((1, target, 1, 500), (0.5,), 3)],
        "ResizeBilinearOptions",
        version=3,
        alignCorners=mode == "align_corners",
        halfPixelCenters=mode == "half_pixel",
    )
    (expected,) = tflite_outputs(model, x)
    line = tflite_interpolation(size, target, mode)
    assert isinstance(line, Interpolation)
    real = np.einsum("ih,nhwc->niwc", dense(line, size), x)
    away = np.copysign(np.floor(np.abs(real) + 0.5), real)
    np.testing.assert_array_equal(away, expected)


def test_factor_two_has_quarters_and_thirds_of_tflite_have_1024ths() -> None:
    line = exact_interpolation(4, 8, "half_pixel")
    assert isinstance(line, Interpolation)
    assert line.weight.tolist()[:3] == [[4, 0], [3, 1], [1, 3]]
    third = tflite_interpolation(4, 12, "half_pixel")
    assert isinstance(third, Interpolation) and third.total == 1024


def test_coordinates_that_leave_the_map_are_refused() -> None:
    assert isinstance(tflite_interpolation(1, 3000, "asymmetric"), Interpolation)  # a step of 0
    reason = tflite_interpolation(3, 2000, "asymmetric")
    assert reason == "TFLite's coordinates of 2000 pixels leave the 3 that there are"


def resized(target: tuple[int, int], **attributes: Any) -> Callable[[Any, Any], Any]:
    """A resize of (n, c, h, w)."""
    options = {"layout": "NCHW", "method": "linear", **attributes}
    options.setdefault("coordinate_transformation_mode", "half_pixel")
    return lambda module, x: module.emit(op.image.resize2d(x, target, **options), "y")


SHAPE = (1, 4, 5, 6)


@pytest.mark.parametrize(
    ("target", "attributes", "scale", "rounding", "reason"),
    [
        ((90, 97), {}, 0.1, "qnnpack", "its weights are multiples of 1/6984, the finest on"),
        ((63, 64), {"align": 1}, 0.1, "qnnpack", "its pixels have 1953 sets of weights, more than"),
        ((15, 18), {}, 0.1, "tflite", "its weights are multiples of 1/1048576, the finest on"),
        ((10, 12), {}, 0.2, "tflite", "its result is quantized to another scale than its input"),
        ((10, 12), {"mode": "pytorch_half_pixel"}, 0.1, "tflite", "TFLite does not resize by"),
        ((10, 12), {"mode": "tf_half_pixel_for_nn"}, 0.1, "qnnpack", "it resizes by the coordin"),
        ((10, 12), {"method": "cubic"}, 0.1, "qnnpack", "it resizes nchw by the method cubic"),
    ],
)
def test_what_the_npu_lacks_stays_on_the_host_with_a_reason(
    target: tuple[int, int], attributes: dict[str, Any], scale: float, rounding: str, reason: str
) -> None:
    given = dict(attributes)
    if "mode" in given:
        given["coordinate_transformation_mode"] = given.pop("mode")
    if given.pop("align", 0):
        given["coordinate_transformation_mode"] = "align_corners"
    (found,) = reasons(resized(target, **given), SHAPE, scale, rounding, 9)
    assert found.startswith(reason)


def test_rooms_agree_on_what_the_npu_has() -> None:
    totals = {module.MOST_TOTAL for module in (resize, reference, cases, peers)}
    assert totals == {4080}
    assert {module.MOST_PHASES for module in (resize, reference, cases)} == {1024}


def test_zero_points_decide_ties_only_where_levels_change() -> None:
    found = {}
    for rounding in ("qnnpack", "fp32", "tflite", "onnxruntime"):
        module = QdqModule(x=SHAPE)
        x = module.dequantize(module.quantize(module.inputs[0], "in", np.float32(0.1), 9))
        y = module.quantize(resized((10, 12))(module, x), "y", np.float32(0.1), 9)
        legalized = legalize_module(module.module(module.dequantize(y)), rounding=rounding)
        (region,) = regions_of(partition(legalized).merged, legalized.layers, {})
        (compute,) = (layer.compute for layer in region.layers)
        assert isinstance(compute, Resize2d)
        found[rounding] = (compute.input_zero_point, compute.requantize.zero_point)
    raw, real = (-128, -128), (9 - 128, 9 - 128)
    assert found == {"qnnpack": raw, "fp32": raw, "tflite": raw, "onnxruntime": real}
