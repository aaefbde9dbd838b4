"""Float TensorFlow Lite graphs as PyTorch modules: the same numbers as LiteRT's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from accelsim.errors import ModelError
from accelsim.importer.floats import from_tflite
from accelsim.importer.tflite import read_model
from accelsim.peers.litert_model import TfliteTensor, constant, tflite_model, tflite_outputs

RNG = np.random.default_rng(5)
X = (1, 9, 8, 6)
SAME, VALID, RELU6 = 0, 1, 3


def real(*shape: int) -> TfliteTensor:
    """A constant of normal numbers."""
    return constant(RNG.normal(size=shape).astype(np.float32), "float32")


def out(*shape: int) -> TfliteTensor:
    return TfliteTensor(shape, dtype="float32")


Case = tuple[str, list[TfliteTensor | None], TfliteTensor, str, dict[str, Any]]
IMAGE = out(*X)
POOL = {"filterHeight": 3, "filterWidth": 2, "strideH": 2, "strideW": 2}
CASES: dict[str, Case] = {
    "conv": (
        "CONV_2D",
        [IMAGE, real(10, 3, 3, 6), real(10)],
        out(1, 5, 4, 10),
        "Conv2DOptions",
        {"padding": SAME, "strideH": 2, "strideW": 2, "fusedActivationFunction": RELU6},
    ),
    "depthwise": (
        "DEPTHWISE_CONV_2D",
        [IMAGE, real(1, 3, 2, 12), real(12)],
        out(1, 7, 7, 12),
        "DepthwiseConv2DOptions",
        {"padding": VALID, "strideH": 1, "strideW": 1, "depthMultiplier": 2},
    ),
    "transposed": (
        "TRANSPOSE_CONV",
        [constant([1, 18, 16, 5]), real(5, 3, 3, 6), IMAGE],
        out(1, 18, 16, 5),
        "TransposeConvOptions",
        {"padding": SAME, "strideH": 2, "strideW": 2},
    ),
    "dense": (
        "FULLY_CONNECTED",
        [IMAGE, real(4, 432), real(4)],
        out(1, 4),
        "FullyConnectedOptions",
        {"fusedActivationFunction": 1},
    ),
    "dense_rows": (
        "FULLY_CONNECTED",
        [IMAGE, real(4, 6), None],
        out(1, 9, 8, 4),
        "FullyConnectedOptions",
        {"keepNumDims": True},
    ),
    "max_pool": (
        "MAX_POOL_2D",
        [IMAGE],
        out(1, 5, 4, 6),
        "Pool2DOptions",
        {"padding": SAME, **POOL},
    ),
    "average_pool": (
        "AVERAGE_POOL_2D",
        [IMAGE],
        out(1, 9, 8, 6),
        "Pool2DOptions",
        {"padding": SAME, "filterHeight": 3, "filterWidth": 3, "strideH": 1, "strideW": 1},
    ),
    "add": ("ADD", [IMAGE, real(1, 1, 1, 6)], IMAGE, "AddOptions", {"fusedActivationFunction": 1}),
    "multiply": ("MUL", [IMAGE, constant([0.5], "float32")], IMAGE, "MulOptions", {}),
    "softmax": ("SOFTMAX", [IMAGE], IMAGE, "SoftmaxOptions", {"beta": 1.0}),
    "logistic": ("LOGISTIC", [IMAGE], IMAGE, "", {}),
    "leaky": ("LEAKY_RELU", [IMAGE], IMAGE, "LeakyReluOptions", {"alpha": 0.2}),
    "transpose": (
        "TRANSPOSE",
        [IMAGE, constant([0, 2, 3, 1])],
        out(1, 8, 6, 9),
        "TransposeOptions",
        {},
    ),
    "reshape": (
        "RESHAPE",
        [IMAGE, constant([1, 72, 6])],
        out(1, 72, 6),
        "ReshapeOptions",
        {"newShape": [1, 72, 6]},
    ),
    "pad": (
        "PAD",
        [IMAGE, constant([[0, 0], [1, 2], [0, 1], [0, 0]])],
        out(1, 12, 9, 6),
        "PadOptions",
        {},
    ),
    "concat": (
        "CONCATENATION",
        [IMAGE, real(*X)],
        out(1, 9, 8, 12),
        "ConcatenationOptions",
        {"axis": 3},
    ),
    "mean": ("MEAN", [IMAGE, constant([1, 2])], out(1, 6), "ReducerOptions", {"keepDims": False}),
}


def converted(data: bytes) -> Any:
    return from_tflite(read_model(data, "case"))


@pytest.mark.parametrize("case", CASES)
def test_an_operator_gives_what_litert_gives(case: str) -> None:
    operator, inputs, output, options, fields = CASES[case]
    data = tflite_model(operator, inputs, [output], options, **fields)
    x = RNG.normal(size=X).astype(np.float32)
    (expected,) = tflite_outputs(data, x)
    with torch.no_grad():
        found = converted(data)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.unique(expected).size > 3


def test_an_operator_without_counterpart_is_refused_by_name() -> None:
    data = tflite_model("COS", [IMAGE], [IMAGE])
    with pytest.raises(ModelError, match="float operator COS"):
        converted(data)


def test_a_constant_that_is_nan_is_refused() -> None:
    broken = constant(np.full(6, np.nan, np.float32), "float32")
    with pytest.raises(ModelError, match="has NaN"):
        converted(tflite_model("ADD", [IMAGE, broken], [IMAGE], "AddOptions"))


def test_an_image_of_another_rank_is_refused() -> None:
    operator, inputs, _, options, fields = CASES["conv"]
    data = tflite_model(operator, inputs, [out(432, 1)], options, **fields)
    with pytest.raises(ModelError, match="four axes"):
        converted(data)


def test_an_addition_of_one_tensor_is_refused() -> None:
    with pytest.raises(ModelError, match="has 1 inputs and not two"):
        converted(tflite_model("ADD", [IMAGE], [IMAGE], "AddOptions"))
