"""Windows of activations, as the address generator of conv, dwconv and pool walks them.

What comes in: activation memory and the window fields of an instruction. What goes out: an array
(out_h, out_w, kernel_h, kernel_w, blocks, lanes), with padding filled in; no loop over elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.simulate.memory import Memory, rows_view

# A window array is a view of a padded copy of the input unless that copy would be this many times
# larger than what the windows touch (large strides with large kernels).
SPARSE = 4
SPARSE_FLOOR = 1 << 14


@dataclass(frozen=True, slots=True)
class Taps:
    """Input coordinates along one axis: origin + output·stride + tap·dilation, within size."""

    origin: int
    size: int
    outputs: int
    stride: int
    taps: int
    dilation: int

    @property
    def span(self) -> int:
        """Coordinates from the first to the last."""
        return (self.outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def inside(self) -> tuple[int, int]:
        """The part [low, high) of the span that is not padding."""
        low = min(max(0, -self.origin), self.span)
        return low, max(low, min(self.span, self.size - self.origin))

    def coordinates(self) -> NDArray[np.int64]:
        """(outputs, taps) input coordinates, padding included."""
        out = np.arange(self.outputs) * self.stride + self.origin
        return out[:, None] + np.arange(self.taps) * self.dilation


def axes(v: Mapping[str, int], kernel_w: int, dilation_w: int) -> tuple[Taps, Taps]:
    """Rows and columns of an instruction's windows."""
    rows = Taps(v["origin_h"], v["in_h"], v["out_h"], v["stride_h"], v["kernel_h"], v["dilation_h"])
    columns = Taps(v["origin_w"], v["in_w"], v["out_w"], v["stride_w"], kernel_w, dilation_w)
    return rows, columns


def windows(
    memory: Memory,
    v: Mapping[str, int],
    blocks: int,
    row_taps: Taps,
    column_taps: Taps,
    dtype: type[np.generic],
    zero_point: int,
    fill: int,
) -> NDArray[Any]:
    """(out_h, out_w, kernel_h, kernel_w, blocks, lanes) of x - zero_point; padding is `fill`."""
    r, c, lanes = row_taps, column_taps, memory.lanes
    strides = (v["in_row_stride"], v["in_col_stride"], v["in_block_stride"])
    touched = r.outputs * r.taps * c.outputs * c.taps
    if r.span * c.span > SPARSE * touched + SPARSE_FLOOR:
        return _gathered(memory, v["in_base"], strides, blocks, r, c, dtype, zero_point, fill)
    (top, bottom), (left, right) = r.inside(), c.inside()
    whole = bottom - top == r.span and right - left == c.span
    shape = (r.span, c.span, blocks, lanes)
    padded = np.empty(shape, dtype) if whole else np.full(shape, fill, dtype)
    if bottom > top and right > left:
        first = v["in_base"] + (r.origin + top) * strides[0] + (c.origin + left) * strides[1]
        source = rows_view(memory.act, first, (bottom - top, right - left, blocks), strides, lanes)
        target = padded[top:bottom, left:right]
        target[...] = source
        if zero_point:
            target -= dtype(zero_point)
    s = padded.strides
    return np.ndarray(
        (r.outputs, c.outputs, r.taps, c.taps, blocks, lanes),
        dtype,
        buffer=padded,
        strides=(r.stride * s[0], c.stride * s[1], r.dilation * s[0], c.dilation * s[1], *s[2:]),
    )


def _gathered(
    memory: Memory,
    base: int,
    strides: tuple[int, int, int],
    blocks: int,
    r: Taps,
    c: Taps,
    dtype: type[np.generic],
    zero_point: int,
    fill: int,
) -> NDArray[Any]:
    """The same windows through an index array, for windows that touch little of their span."""
    h, w = r.coordinates()[:, None, :, None], c.coordinates()[None, :, None, :]
    valid = (h >= 0) & (h < r.size) & (w >= 0) & (w < c.size)
    pixel = base + h * strides[0] + w * strides[1]
    block = np.arange(blocks) * strides[2]
    index = np.where(valid[..., None], pixel[..., None] + block, 0)
    x = memory.act[index].astype(dtype)
    if zero_point:
        x -= dtype(zero_point)
    x[~valid] = fill
    return x
