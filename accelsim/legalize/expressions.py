"""What the tensor expressions of operators share: (n, h, w, c) views, rounding, clamping, windows.

What comes in: the placeholders of an operator's call, as `Arguments`. What goes out: parts of a
tensor expression over (n, h, w, c), whatever the layout of the graph's tensors. It must not know
Relax or any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from accelsim.artifacts import Shape4
from accelsim.legalize.integer_op import IntegerOp
from accelsim.legalize.layout import AXES, nhwc
from accelsim.legalize.rounding import scaled

Expression = Any
Element = Callable[[Any, Any, Any, Any], Expression]  # of (n, h, w, c)


@dataclass(frozen=True, slots=True)
class Activation:
    """An input, read as (n, h, w, c); an axis that its layout lacks has extent 1."""

    tensor: Any
    layout: str

    @property
    def shape(self) -> Shape4:
        """(n, h, w, c)."""
        return nhwc(self.tensor.shape, self.layout)

    def __call__(self, *index: Any) -> Expression:
        """The int8 element at (n, h, w, c)."""
        places = dict(zip(AXES, index, strict=True))
        return self.tensor(*[places[axis] for axis in self.layout])


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of an operator's call.

    `values` has the fields of the operator's dataclass. A whole or a real number in it is an
    expression that reads it from the call's arguments, so that operators of equal shapes share one
    PrimFunc; an array is a tensor; text, truth values, None and lengths of tuples are themselves.
    """

    activations: tuple[Activation, ...]
    values: Any


def output_shape(op: IntegerOp) -> Shape4:
    """(n, h, w, c) of the operator's output."""
    return nhwc(op.shape, op.layout)


def output(op: IntegerOp, element: Element, name: str = "output") -> Any:
    """The operator's output tensor, in the graph's layout, from its element at (n, h, w, c)."""

    def at(*index: Any) -> Expression:
        places = dict(zip(op.layout, index, strict=True))
        return element(*[places.get(axis, 0) for axis in AXES])

    return te.compute(op.shape, at, name=name)


def requantized(accumulator: Expression, requantize: Any, channel: Any) -> Expression:
    """int32 → int8, as the mirrored `Requantize` says; one multiplier is that of all channels."""
    place = channel if int(requantize.multiplier.shape[0]) > 1 else 0
    multiplier = requantize.multiplier(place)
    if requantize.mode == "fp32":
        return clamped(tirx.nearbyint(accumulator.astype("float32") * multiplier), requantize)
    steps = scaled(requantize.mode, accumulator, multiplier, requantize.shift(place))
    return clamped_integer(steps, requantize)


def clamped(value: Expression, end: Any) -> Expression:
    """A rounded float32 → int8, with zero_point, clamp_min and clamp_max of `end`.

    The zero point is added after the clamp, where every value is exact in float32.
    """
    lowest, highest = (
        (limit - end.zero_point).astype("float32") for limit in (end.clamp_min, end.clamp_max)
    )
    bounded = tirx.max(tirx.min(value, highest), lowest)
    return (bounded.astype("int32") + end.zero_point).astype("int8")


def clamped_integer(value: Expression, end: Any) -> Expression:
    """An integer → int8, with zero_point, clamp_min and clamp_max of `end`."""
    shifted = value.astype("int64") + end.zero_point.astype("int64")
    low, high = (limit.astype("int64") for limit in (end.clamp_min, end.clamp_max))
    return tirx.min(tirx.max(shifted, low), high).astype("int8")


def padded(x: Activation, padding: Sequence[int], dtype: str, fill: Any, offset: Any) -> Any:
    """(n, h, w, c) with `x - offset` inside and `fill` in the padding, of `dtype`."""
    n, height, width, c = x.shape
    top, left, bottom, right = padding

    def element(image: Any, row: Any, column: Any, channel: Any) -> Expression:
        inside = x(image, row - top, column - left, channel).astype(dtype)
        inside = inside - offset.astype(dtype)
        if not any(padding):
            return inside
        rows = tirx.all(row >= top, row < height + top)
        columns = tirx.all(column >= left, column < width + left)
        return tirx.if_then_else(tirx.all(rows, columns), inside, tirx.const(fill, dtype))

    shape = (n, height + top + bottom, width + left + right, c)
    return te.compute(shape, element, name="padded")
