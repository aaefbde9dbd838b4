"""Float TensorFlow Lite operators in a row: images stay channels first where operators allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from accelsim.errors import ModelError
from accelsim.importer.floats import from_tflite
from accelsim.importer.tflite import read_model
from accelsim.peers.litert_model import (
    Step,
    TfliteTensor,
    constant,
    tflite_network,
    tflite_outputs,
)

RNG = np.random.default_rng(17)
X = (1, 9, 8, 6)
IMAGE = TfliteTensor(X, dtype="float32")
SAME, VALID = 0, 1
POINT = {"padding": VALID, "strideH": 1, "strideW": 1}


def real(*shape: int) -> TfliteTensor:
    """A constant of normal numbers."""
    return constant(RNG.normal(size=shape).astype(np.float32), "float32")


def out(*shape: int) -> TfliteTensor:
    return TfliteTensor(shape, dtype="float32")


class Graph:
    """A network while it is written; the input is its tensor 0."""

    def __init__(self) -> None:
        self.tensors, self.steps = [IMAGE], list[Step]()

    def add(self, operator: str, inputs: Sequence[Any], shape: Any, **fields: Any) -> int:
        """An operator; inputs are numbers of tensors, or constants. `options` names the table."""
        taken = []
        for one in inputs:
            if isinstance(one, TfliteTensor):
                self.tensors.append(one)
            taken.append(len(self.tensors) - 1 if isinstance(one, TfliteTensor) else one)
        self.tensors.append(out(*shape))
        made = len(self.tensors) - 1
        options = fields.pop("options", "")
        self.steps.append(Step(operator, tuple(taken), (made,), options, 1, fields))
        return made

    def image(self, channels: int = 6, **fields: Any) -> int:
        """A 1×1 convolution of the input, whose result is an image."""
        return self.conv(0, real(channels, 1, 1, 6), (1, 9, 8, channels), **(POINT | fields))

    def conv(self, source: int, weight: TfliteTensor, shape: Any, **fields: Any) -> int:
        inputs = [source, weight, real(weight.shape[0])]
        return self.add("CONV_2D", inputs, shape, options="Conv2DOptions", **fields)

    def data(self) -> bytes:
        """The file, whose output is the last operator's."""
        return tflite_network(self.tensors, self.steps, [0], [len(self.tensors) - 1])


def dilated(g: Graph) -> None:
    fields = {"dilationHFactor": 2, "dilationWFactor": 3, "strideH": 1, "strideW": 1}
    g.conv(0, real(5, 3, 2, 6), (1, 9, 8, 5), padding=SAME, **fields)


def strided(g: Graph) -> None:
    g.conv(0, real(5, 2, 3, 6), (1, 8, 3, 5), padding=VALID, strideH=1, strideW=2)


def depthwise(g: Graph) -> None:
    fields = {"padding": SAME, "strideH": 2, "strideW": 2, "depthMultiplier": 1}
    inputs = [0, real(1, 3, 3, 6), real(6)]
    g.add("DEPTHWISE_CONV_2D", inputs, (1, 5, 4, 6), options="DepthwiseConv2DOptions", **fields)


def transposed(g: Graph) -> None:
    inputs = [constant([1, 19, 17, 4]), real(4, 3, 3, 6), 0]
    fields = {"padding": VALID, "strideH": 2, "strideW": 2}
    g.add("TRANSPOSE_CONV", inputs, (1, 19, 17, 4), options="TransposeConvOptions", **fields)


def transposed_odd(g: Graph) -> None:
    inputs = [constant([1, 18, 16, 4]), real(4, 4, 5, 6), 0]
    fields = {"padding": SAME, "strideH": 2, "strideW": 2}
    g.add("TRANSPOSE_CONV", inputs, (1, 18, 16, 4), options="TransposeConvOptions", **fields)


def max_pool(g: Graph) -> None:
    kernel = {"filterHeight": 3, "filterWidth": 1, "strideH": 2, "strideW": 1}
    g.add("MAX_POOL_2D", [0], (1, 4, 8, 6), options="Pool2DOptions", padding=VALID, **kernel)


def uneven_max(g: Graph) -> None:
    kernel = {"filterHeight": 2, "filterWidth": 2, "strideH": 1, "strideW": 1}
    g.add("MAX_POOL_2D", [0], X, options="Pool2DOptions", padding=SAME, **kernel)


def grouped(g: Graph) -> None:
    g.conv(0, real(4, 2, 2, 3), (1, 8, 7, 4), **POINT)


def joined(axis: int) -> Any:
    def build(g: Graph) -> None:
        shape = list(X)
        shape[axis] *= 2
        fields = {"options": "ConcatenationOptions", "axis": axis}
        g.add("CONCATENATION", [g.image(), g.image()], shape, **fields)

    return build


def joined_with_constant(g: Graph) -> None:
    fields = {"options": "ConcatenationOptions", "axis": 1}
    g.add("CONCATENATION", [g.image(), real(1, 2, 8, 6)], (1, 11, 8, 6), **fields)


def added(g: Graph) -> None:
    g.add("ADD", [g.image(), g.image()], X, options="AddOptions", fusedActivationFunction=3)


def added_column(g: Graph) -> None:
    g.add("ADD", [g.image(), real(8, 1)], X, options="AddOptions")


def added_number(g: Graph) -> None:
    g.add("MUL", [real(1), g.image()], X, options="MulOptions")


def averaged(keep: bool, *axes: int) -> Any:
    def build(g: Graph) -> None:
        kept = [1 if axis in axes else extent for axis, extent in enumerate(X)]
        shape = kept if keep else [e for axis, e in enumerate(X) if axis not in axes]
        inputs = [g.image(), constant(list(axes))]
        g.add("MEAN", inputs, shape, options="ReducerOptions", keepDims=keep)

    return build


def reduced(operator: str) -> Any:
    def build(g: Graph) -> None:
        g.add(operator, [0, constant([1, 3])], (1, 8), options="ReducerOptions", keepDims=False)

    return build


def flattened(g: Graph) -> None:
    flat = g.add("RESHAPE", [g.image(), constant([1, 432])], (1, 432))
    g.add("FULLY_CONNECTED", [flat, real(5, 432), -1], (1, 5), options="FullyConnectedOptions")


def soft(g: Graph) -> None:
    g.add("SOFTMAX", [g.image()], X, options="SoftmaxOptions", beta=1.0)


def padded(g: Graph) -> None:
    widths = constant([[0, 0], [1, 2], [0, 1], [3, 0]])
    g.add("PAD", [g.image(), widths], (1, 12, 9, 9), options="PadOptions")


def turned(g: Graph) -> None:
    g.add("TRANSPOSE", [g.image(), constant([0, 3, 1, 2])], (1, 6, 9, 8))


def fused(number: int) -> Any:
    return lambda g: g.image(fusedActivationFunction=number)


def activation(operator: str, **fields: Any) -> Any:
    return lambda g: g.add(operator, [g.image()], X, **fields)


def of_two(operator: str, options: str = "") -> Any:
    return lambda g: g.add(operator, [0, real(*X)], X, options=options)


CASES: dict[str, Any] = {
    "dilated": dilated,
    "strided": strided,
    "depthwise": depthwise,
    "transposed": transposed,
    "transposed_odd": transposed_odd,
    "max_pool": max_pool,
    "uneven_max": uneven_max,
    "grouped": grouped,
    **{f"joined_{axis}": joined(axis) for axis in (1, 2, 3)},
    "joined_with_constant": joined_with_constant,
    "added": added,
    "added_column": added_column,
    "added_number": added_number,
    "averaged_kept": averaged(True, 1, 2),
    "averaged_rows_kept": averaged(True, 1),
    "averaged": averaged(False, 1, 2),
    "sum": reduced("SUM"),
    "largest": reduced("REDUCE_MAX"),
    "flattened": flattened,
    "soft": soft,
    "padded": padded,
    "turned": turned,
    **{f"fused_{number}": fused(number) for number in (1, 2, 3)},
    **{
        operator.lower(): activation(operator)
        for operator in ("RELU", "RELU6", "RELU_N1_TO_1", "TANH", "HARD_SWISH")
    },
    "gelu": activation("GELU", options="GeluOptions", approximate=False),
    "gelu_tanh": activation("GELU", options="GeluOptions", approximate=True),
    "sub": of_two("SUB", "SubOptions"),
    "div": of_two("DIV", "DivOptions"),
    "maximum": of_two("MAXIMUM", "MaximumMinimumOptions"),
    "minimum": of_two("MINIMUM", "MaximumMinimumOptions"),
}


@pytest.mark.parametrize("case", CASES)
def test_operators_in_a_row_give_what_litert_gives(case: str) -> None:
    graph = Graph()
    CASES[case](graph)
    data = graph.data()
    x = 3 * RNG.normal(size=X).astype(np.float32)
    (expected,) = tflite_outputs(data, x)
    with torch.no_grad():
        found = from_tflite(read_model(data, "case"))(torch.from_numpy(x)).numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.unique(expected).size > 3


def test_elu_falls_to_minus_one() -> None:  # which LiteRT's reference kernels lack
    graph = Graph()
    graph.add("ELU", [0], X)
    x = RNG.normal(size=X).astype(np.float32)
    with torch.no_grad():
        found = from_tflite(read_model(graph.data(), "case"))(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, np.where(x > 0, x, np.expm1(x)), rtol=1e-5, atol=1e-6)


def sharpened(g: Graph) -> None:
    g.add("SOFTMAX", [0], X, options="SoftmaxOptions", beta=2.0)


def shuffled(g: Graph) -> None:
    flat = g.add("RESHAPE", [0, constant([1, 432])], (1, 432))
    fields = {"options": "FullyConnectedOptions", "weightsFormat": 1}
    g.add("FULLY_CONNECTED", [flat, real(5, 432), -1], (1, 5), **fields)


def uneven_average(g: Graph) -> None:
    kernel = {"filterHeight": 2, "filterWidth": 2, "strideH": 1, "strideW": 1}
    g.add("AVERAGE_POOL_2D", [0], X, options="Pool2DOptions", padding=SAME, **kernel)


REFUSED = {
    "sharpened": (sharpened, "has the beta 2.0"),
    "shuffled": (shuffled, "has no weights, or shuffled ones"),
    "uneven_average": (uneven_average, "padded unequally"),
    "fused_sign": (fused(5), "has the fused activation 5"),
    "rows": (averaged(False, 1), r"reduces the axes \[1\] of an image"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_counterpart_is_refused(case: str) -> None:
    build, sentence = REFUSED[case]
    graph = Graph()
    build(graph)
    with pytest.raises(ModelError, match=sentence):
        from_tflite(read_model(graph.data(), "case"))
