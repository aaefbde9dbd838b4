"""Pieces that the layers of several peers share: padding, groups, identity and mean.

What comes in: a peer's parameters as integers and arrays. What goes out: fields of `LayerOp`s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, I32, Assemble, Conv2d, Piece, Pool2d, Requantize, Shape4
from accelsim.spec.arithmetic import reciprocal

Pair = tuple[int, int]
Indices = tuple[I32, I32, I32, I32]
Sides = tuple[int, int, int, int]  # top, left, bottom, right


def padding_after(size: int, out: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    """Padding behind an axis with which its windows give `out` elements, 0 at least."""
    return max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size - before)


def sides(size: Pair, out: Pair, kernel: Pair, stride: Pair, dilation: Pair, before: Pair) -> Sides:
    """Padding on all sides from that before each axis."""
    after = [
        padding_after(*axis)
        for axis in zip(size, out, kernel, stride, dilation, before, strict=True)
    ]
    return (before[0], before[1], after[0], after[1])


def ungrouped(weight: I8, in_channels: int, zero: int) -> tuple[I8, bool]:
    """(weight, depthwise) of a convolution whose weight has the input channels of one group only.

    Groups other than depthwise ones become zeros of a dense weight.
    """
    out, rows, cols, each = weight.shape
    groups = in_channels // each
    if groups == 1 or (each == 1 and out == in_channels):
        return weight, groups > 1
    dense = np.full((out, rows, cols, in_channels), zero, np.int8)
    for channel in range(out):
        first = channel // (out // groups) * each
        dense[channel, ..., first : first + each] = weight[channel]
    return dense, False


def identity(low: int = -128, high: int = 127) -> Requantize:
    """Takes a value as it is, and clamps it."""
    return Requantize(np.ones(1, np.float32), 0, low, high)


def integer_scale(
    mode: str,
    mantissas: NDArray[np.integer] | Sequence[int],
    shifts: NDArray[np.integer] | Sequence[int],
    zero: int,
    limits: Pair = (-128, 127),
) -> Requantize:
    """Requantization in an integer mode, by channel."""
    mantissa, shift = np.asarray(mantissas, np.int32), np.asarray(shifts, np.int32)
    return Requantize(mantissa, zero, *limits, mode=mode, shift=shift)


def divide(count: int, limits: Pair) -> Requantize:
    """Division by a count, ties away from zero."""
    mantissa, shift = reciprocal(count)
    return integer_scale("half_away", [mantissa], [shift], 0, limits)


def average(
    kernel: Pair, stride: Pair, padding: Sides, size: Pair, out: Pair, limits: Pair
) -> Pool2d:
    """TFLite's average: the sum over what lies inside, by its count, ties away from zero."""
    axes = zip(size, out, kernel, stride, padding[:2], strict=True)
    rows, cols = (covered(*axis) for axis in axes)
    counts = sorted({r * c for r in rows for c in cols})
    by_count = tuple((count, divide(count, limits)) for count in counts)
    full = divide(kernel[0] * kernel[1], limits)
    return Pool2d("sum", kernel, stride, padding, 0, full, *limits, by_count=by_count)


def covered(size: int, out: int, kernel: int, stride: int, before: int) -> set[int]:
    """How many elements of an axis its windows cover."""
    starts = [i * stride - before for i in range(out)]
    return {max(0, min(size, start + kernel) - max(0, start)) for start in starts}


def piece(index: int, shape: Shape4, offset: Shape4) -> Piece:
    """A whole input of `shape` placed at an offset."""
    n, h, w, c = (np.arange(length, dtype=np.int32) for length in shape)
    at = (n + offset[0], h + offset[1], w + offset[2], c + offset[3])
    return Piece(index, (n, h, w, c), at)


def with_bias(bias: I32 | None, channels: int) -> I32:
    """A bias, zeros where there is none."""
    return np.zeros(channels, np.int32) if bias is None else bias.astype(np.int32)


def convolution(
    weight: I8,
    bias: I32 | None,
    zeros: Pair,
    requantize: Requantize,
    in_channels: int,
    geometry: tuple[Pair, Sides, Pair] = ((1, 1), (0, 0, 0, 0), (1, 1)),
) -> Conv2d:
    """A convolution; `geometry` is stride, padding and dilation, `zeros` those of input, weight."""
    dense, depthwise = ungrouped(weight, in_channels, zeros[1])
    biases = with_bias(bias, weight.shape[0])
    stride, padding, dilation = geometry
    return Conv2d(dense, biases, *zeros, requantize, stride, padding, dilation, depthwise=depthwise)


def four(values: Sequence[Any]) -> Indices:
    """Index arrays of four axes."""
    a, b, c, d = (np.asarray(one, np.int32) for one in values)
    return a, b, c, d


def all_of(shape: Sequence[int]) -> list[np.ndarray]:
    """Indices of a whole tensor."""
    return [np.arange(length) for length in shape]


def picked(take: Sequence[Any]) -> Assemble:
    """Elements of one input at index arrays, in that order."""
    return Assemble((Piece(0, four(take), four(all_of([len(one) for one in take]))),))
