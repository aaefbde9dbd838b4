"""A case as a user's network of one layer: quantize, dequantize, a Relax operator, quantize.

What comes in: activations with scales and zero points, and a function that states the operator.
What goes out: `Compiled`, the case for the whole compiler. Image operators are NCHW here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from accelsim.artifacts import I8, QuantizedModel
from accelsim.ops.modules import Builder, constant
from accelsim.peers.case import Compiled

op = relax.op
Body = Callable[[Builder, list[Any]], Any]
LAYER = "layer"
CLIPS = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}  # by number of a fused activation


@dataclass(frozen=True, slots=True)
class Side:
    """An activation in the graph's layout, or an output without values."""

    scale: float
    zero: int
    values: I8 | None = None


def compiled(
    rounding: str, sources: Sequence[Side], target: Side, expected: I8, body: Body, fused: int = 0
) -> Compiled:
    """One operator between quantized tensors; `fused` numbers an activation behind it."""
    inputs = tuple(one.values for one in sources if one.values is not None)

    def model() -> QuantizedModel:
        build = Builder()
        values = []
        for number, one in enumerate(sources):
            assert one.values is not None
            name = f"in{number}"
            x = build.input(name, one.values.shape)
            values.append(build.requantized(x, name, np.float32(one.scale), one.zero, "int8"))
        value = clipped(build, body(build, values), fused)
        result = build.requantized(value, LAYER, np.float32(target.scale), target.zero, "int8")
        return QuantizedModel(
            name="peer",
            exported=None,
            qdq=build.module([result]),
            torch_int8=None,
            layer_names=(LAYER,),
            input_names=(),
            input_shapes=(),
            input_dtypes=(),
            rounding=rounding,
        )

    return Compiled(model, inputs, expected)


def clipped(build: Builder, value: Any, fused: int) -> Any:
    """A fused activation."""
    if fused not in CLIPS:
        return value
    low, high = CLIPS[fused]
    if high is None:
        return build.emit(op.nn.relu(value))
    return build.emit(op.clip(value, low, high))


def image(values: NDArray[Any]) -> NDArray[Any]:
    """(n, h, w, c) → (n, c, h, w)."""
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def dequantized(
    build: Builder, values: NDArray[Any], scales: Sequence[float], axis: int, zero: int = 0
) -> Any:
    """A constant with one scale, or one along an axis."""
    many = np.asarray(scales, np.float32)
    zeros = np.full(many.shape, zero, np.int32)
    if many.size == 1:
        many, zeros = many.reshape(()), zeros.reshape(())
    stored = constant(values, str(values.dtype))
    parameters = (constant(many, "float32"), constant(zeros, "int32"))
    return build.emit(op.dequantize(stored, *parameters, axis=axis))


def call(function: Callable[..., Any], **attributes: Any) -> Body:
    """An operator of activations only."""
    return lambda build, values: build.emit(function(*values, **attributes))


def same(_build: Builder, values: list[Any]) -> Any:
    """No operator: a change of scale."""
    return values[0]


def hard_swish(build: Builder, values: list[Any]) -> Any:
    """x · (relu6(x + 3) / 6)."""
    (x,) = values
    raised = build.emit(op.add(x, constant(3.0, "float32")))
    gate = build.emit(op.clip(raised, 0, 6))
    share = build.emit(op.divide(gate, constant(6.0, "float32")))
    return build.emit(op.multiply(x, share))


def convolution(
    weight: I8,
    scales: Sequence[float],
    bias: NDArray[Any] | None,
    source: float,
    attributes: dict[str, Any],
    transposed: bool = False,
    zero: int = 0,
) -> Body:
    """Weights (out, h, w, in / groups); with a bias in integers or in real numbers."""

    def body(build: Builder, values: list[Any]) -> Any:
        if transposed:
            kernel = np.ascontiguousarray(weight.transpose(3, 0, 1, 2))
            value = op.nn.conv2d_transpose(
                values[0], dequantized(build, kernel, scales, 1, zero), **attributes
            )
        else:
            kernel = np.ascontiguousarray(weight.transpose(0, 3, 1, 2))
            constants = dequantized(build, kernel, scales, 0, zero)
            value = op.nn.conv2d(values[0], constants, **attributes)
        return biased(build, build.emit(value), bias, scales, source, (1, -1, 1, 1))

    return body


def linear(
    weight: I8,
    scales: Sequence[float],
    bias: NDArray[Any] | None,
    source: float,
    zero: int = 0,
) -> Body:
    """Weights (out, in), with a bias in integers or in real numbers."""

    def body(build: Builder, values: list[Any]) -> Any:
        turned = build.emit(op.permute_dims(dequantized(build, weight, scales, 0, zero)))
        product = build.emit(op.matmul(values[0], turned))
        return biased(build, product, bias, scales, source, (-1,))

    return body


def biased(
    build: Builder,
    value: Any,
    bias: NDArray[Any] | None,
    scales: Sequence[float],
    source: float,
    shape: tuple[int, ...],
) -> Any:
    """A bias of `shape`: integers have steps of the source's scale times a weight's."""
    if bias is None:
        return value
    numbers = bias.reshape(shape)
    if bias.dtype != np.int32:
        return build.emit(op.add(value, constant(numbers, "float32")))
    steps = [float(np.float32(source) * np.float32(one)) for one in scales]
    return build.emit(op.add(value, dequantized(build, numbers, steps, shape.index(-1))))
