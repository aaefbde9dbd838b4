"""Layer normalization over the channels, in integers, in every rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import te, tirx

from accelsim.artifacts import I32, LayerNorm
from accelsim.legalize.expressions import Arguments, clamped_integer, output, output_shape
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.spec.normalization import (
    DEVIATION_BITS,
    LARGEST_ROW,
    OFFSET_BITS,
    RECIPROCAL_BITS,
    ROOT_BITS,
)

MOST_GAIN_BITS, MOST_SHIFT = 24, 15
INT32_MAX = 2**31 - 1
FARTHEST = 4.0  # output steps from the real normalization, at most


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A layer normalization of a quantized activation over its last axis."""
    leaf = leaf_of(frame, node.args[0])
    if leaf is None:
        return None
    rank, attrs = len(node.shape), node.value.attrs
    if [int(axis) % rank for axis in attrs.axes] != [rank - 1]:
        return Rejection("it normalizes over more than the last axis")
    if leaf.layout[-1:] != "c":
        return Rejection("its last axis is not the one of its channels")
    gain, offset = (frame.graph.constant(one) for one in node.args[1:3])
    if gain is None or offset is None:
        return Rejection("its gain and offset are not constant")
    channels, step = leaf.shape[-1], float(frame.quantization.scale)
    if channels > LARGEST_ROW:
        return Rejection(f"its rows have {channels} elements, the NPU takes {LARGEST_ROW}")
    gain = gain.astype(np.float64) * bool(attrs.scale) + (not attrs.scale)
    parameters = _parameters(gain / step, offset * float(bool(attrs.center)) / step)
    epsilon = _epsilon(float(attrs.epsilon), leaf.quantization.scale, channels)
    if parameters is None or epsilon is None:
        return Rejection("its gain, offset or epsilon is beyond the NPU's integers")
    whole, shift, missed = epsilon
    bound = distance(channels, parameters[2], np.abs(gain / step).max(), whole << shift, missed)
    if bound > FARTHEST:
        return Rejection(
            f"its integers may miss the real result by {bound:.1f} steps: its epsilon is "
            "small and its gain large for the scales that it has"
        )
    ends = (frame.quantization.int8_zero_point, *frame.int8_limits)
    gains, offsets, gain_bits = parameters
    compute = LayerNorm(gains, offsets, gain_bits, whole, shift, *ends)
    return operator_of(frame, "layer_norm", (leaf,), compute)


def _parameters(
    gain: NDArray[np.float64], offset: NDArray[np.float64]
) -> tuple[I32, I32, int] | None:
    """(gain int32, offset int32, gain_bits) of gain and offset in output steps."""
    largest = float(np.abs(gain).max())
    bits = min(MOST_GAIN_BITS, 30 - math.frexp(largest)[1] + 1)
    offsets = np.rint(offset * 2.0**OFFSET_BITS)
    if bits < 0 or not np.isfinite(gain).all() or not (np.abs(offsets) <= INT32_MAX).all():
        return None
    gains = np.minimum(np.rint(gain * 2.0**bits), INT32_MAX)
    return gains.astype(np.int32), offsets.astype(np.int32), bits


def _epsilon(epsilon: float, scale: np.float32, channels: int) -> tuple[int, int, float] | None:
    """(epsilon, shift, what rounding missed) in units of 1/channels² input steps²."""
    exact = Fraction(epsilon) * channels**2 / Fraction(float(scale)) ** 2
    for shift in range(MOST_SHIFT + 1):
        whole = round(exact / 2**shift)
        if whole <= INT32_MAX:
            return whole, shift, abs(float(exact - (whole << shift)))
    return None


def distance(channels: int, gain_bits: int, gain: float, epsilon: int, missed: float) -> float:
    """Output steps between the integers and the real normalization at most, before limits.

    A normalized element z is at most √(n - 1). Its root is 2^-23 off, relative, and z is rounded
    to 2^-20; an epsilon that is off by `missed` moves it by missed·√(n - 1)·√A / (2·(A + ε)^1.5)
    where A = n²·variance, which is 0 or at least n - 1; that is largest at A = ε / 2.
    """
    most = math.sqrt(max(channels - 1, 0))
    least = max(epsilon / 2, channels - 1, 1)
    moved = missed * most * math.sqrt(least) / (2 * (least + epsilon) ** 1.5)
    deviation = most * 2.0**-22.9 + 2.0**-21 + moved
    return float(0.5 + gain * deviation + most * 2.0 ** -(gain_bits + 1) + 2.0**-17)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Sums, the root of the variance, its reciprocal; then each element."""
    (x,) = arguments.activations
    norm = arguments.values
    n, h, w, channels = output_shape(op)
    rows = (n, h, w)
    first, second = (te.reduce_axis((0, channels), name) for name in ("c", "e"))

    def wide(*at: Any) -> Any:
        return x(*at).astype("int64")

    total = te.compute(rows, lambda *row: te.sum(wide(*row, first), axis=first), name="total")
    squares = te.compute(
        rows, lambda *row: te.sum(wide(*row, second) * wide(*row, second), axis=second)
    )

    def spread(*row: Any) -> Any:
        epsilon = norm.epsilon.astype("int64") << norm.epsilon_shift.astype("int64")
        return channels * squares(*row) - total(*row) * total(*row) + epsilon

    variance = te.compute(rows, spread, name="variance")
    height = te.compute(
        rows,
        lambda *row: tirx.min((ROOT_BITS - 64 + tirx.clz(variance(*row))) // 2, 23).astype("int64"),
        name="height",
    )
    inverse = te.compute(rows, lambda *row: _inverse(variance(*row) << (2 * height(*row))))

    def element(*index: Any) -> Any:
        row, channel = index[:3], index[3]
        places = RECIPROCAL_BITS - DEVIATION_BITS - height(*row)
        product = (channels * wide(*index) - total(*row)) * inverse(*row)
        deviation = _half_up(product, places)
        flat = variance(*row) == 0
        deviation = tirx.if_then_else(flat, tirx.const(0, "int64"), deviation)
        bits = norm.gain_bits.astype("int64")
        offset = norm.offset(channel).astype("int64") << (bits + (DEVIATION_BITS - OFFSET_BITS))
        sums = deviation * norm.gain(channel).astype("int64") + offset
        return clamped_integer(_half_up(sums, bits + DEVIATION_BITS), norm)

    return output(op, element, "layer_norm")


def _inverse(raised: Any) -> Any:
    """floor(2^54 / floor(√raised)); a float64 root is one off at most."""
    near = tirx.sqrt(raised.astype("float64")).astype("int64")
    root = near - (near * near > raised).astype("int64")
    root = root + ((root + 1) * (root + 1) <= raised).astype("int64")
    return tirx.const(1 << RECIPROCAL_BITS, "int64") // tirx.max(root, tirx.const(1, "int64"))


def _half_up(value: Any, places: Any) -> Any:
    return (value + (tirx.const(1, "int64") << (places - 1))) >> places


OPERATOR = Operator(("layer_norm",), ("relax.nn.layer_norm",), LayerNorm, read, expression)
