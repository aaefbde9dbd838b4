"""Parts of a pooling layer that one kind of instruction covers.

What comes in: a pooling layer and two views. What goes out: `Region`s. It must not know tiles.

Windows with gaps between their elements read every so many rows: outputs at the distance at which
they meet the same rows form one region. Adaptive windows repeat at the distance at which inputs and
outputs do, and each of those between is a region. Where a sum is divided by the number of elements
inside the input, a region is a rectangle of one number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby, product
from math import gcd

import numpy as np

from accelsim.artifacts import Pool2d, Requantize
from accelsim.errors import ModelError
from accelsim.schedule.limits import check_padding, step
from accelsim.schedule.view import Box, Span, View, check_strides, dense, tail
from accelsim.schedule.window import Axis


@dataclass(frozen=True, slots=True)
class Region:
    """Outputs whose windows are alike: `pool` has their kernel and stride over the views."""

    pool: Pool2d
    rows: Axis
    cols: Axis
    source: View
    target: View
    requantize: Requantize | None


@dataclass(frozen=True, slots=True)
class Phase:
    """One axis: outputs first, first + step, … read inputs start, start + apart, …."""

    first: int
    step: int
    start: int
    apart: int
    kernel: int
    axis: Axis


def needed(region: Region, box: Box) -> Box:
    """What windows of `box` read; the kernel's part outside the input left out."""
    kernel = region.pool.kernel
    rows = region.rows.needs(box.rows, (0, kernel[0]))
    return Box(box.image, rows, region.cols.needs(box.cols, (0, kernel[1])), box.blocks)


def window_fields(region: Region, box: Box, lanes: int) -> dict[str, int]:
    """Fields of a `pool` of one tile: what it reads, in which windows, and what it writes."""
    pool, rows, cols = region.pool, region.rows, region.cols
    piece = needed(region, box)
    return {
        "in_h": piece.shape[0],
        "in_w": piece.shape[1],
        **dense("in", piece.shape),
        "origin_h": rows.origin(box.rows, (0, pool.kernel[0]), piece.rows[0]),
        "origin_w": cols.origin(box.cols, (0, pool.kernel[1]), piece.cols[0]),
        "stride_h": step(pool.stride[0]),
        "stride_w": step(pool.stride[1]),
        "kernel_h": pool.kernel[0],
        "kernel_w": pool.kernel[1],
        "out_h": box.shape[0],
        "out_w": box.shape[1],
        "blocks": box.shape[2],
        "tail": tail(region.target.channels, box.blocks, lanes),
        **dense("dst", box.shape),
    }


def regions(name: str, pool: Pool2d, source: View, target: View) -> list[Region]:
    """All outputs. Raises ModelError, naming the layer, where the NPU's fields do not reach."""
    result: list[Region] = []
    phases = [_phases(pool, i, source.shape[1 + i], target.shape[1 + i]) for i in (0, 1)]
    for rows, cols in product(*phases):
        origin, apart = (0, rows.start, cols.start), (1, rows.apart, cols.apart)
        read = source.every(origin, apart, (source.shape[0], rows.axis.size, cols.axis.size))
        first, step = (0, rows.first, cols.first), (1, rows.step, cols.step)
        written = target.every(first, step, (target.shape[0], rows.axis.out, cols.axis.out))
        check_strides(name, read, written)
        kernel, stride = (rows.kernel, cols.kernel), (rows.axis.stride, cols.axis.stride)
        check_padding(name, (rows.axis, cols.axis), kernel)
        own = replace(pool, kernel=kernel, stride=stride)
        whole = Region(own, rows.axis, cols.axis, read, written, pool.requantize)
        result += _by_count(name, whole) if pool.by_count else [whole]
    return result


def _phases(pool: Pool2d, i: int, size: int, out: int) -> list[Phase]:
    """Phases of one axis that have outputs."""
    kernel, stride, apart, pad = pool.kernel[i], pool.stride[i], pool.dilation[i], pool.padding[i]
    if pool.adaptive:
        common = gcd(size, out)
        move, step = size // common, out // common
        found = []
        for first in range(step):
            start, end = first * move // step, -(-(first + 1) * move // step)
            axis = Axis(size, common, move if common > 1 else 1, 1, -start)
            found.append(Phase(first, step, 0, 1, end - start, axis))
        return found
    step = apart // gcd(apart, stride)
    found = []
    for first in range(min(step, out)):
        origin = first * stride - pad
        start = origin % apart
        length = -(-(size - start) // apart)
        outputs = -(-(out - first) // step)
        axis = Axis(length, outputs, step * stride // apart, 1, (start - origin) // apart)
        found.append(Phase(first, step, start, apart, kernel, axis))
    return found


def _by_count(name: str, whole: Region) -> list[Region]:
    """Rectangles of a region with one number of inside elements each."""
    known = dict(whole.pool.by_count)
    result: list[Region] = []
    for h_count, h in _counts(whole.rows, whole.pool.kernel[0]):
        for w_count, w in _counts(whole.cols, whole.pool.kernel[1]):
            count = h_count * w_count
            # An empty window sums to 0, and 0 times any multiplier is 0.
            requantize = known.get(count) if count else whole.pool.by_count[0][1]
            if requantize is None:
                raise ModelError(
                    f"layer {name}: windows of {count} elements occur, but no requantization for "
                    "them is given"
                )
            result.append(
                replace(
                    whole,
                    rows=_shifted(whole.rows, h),
                    cols=_shifted(whole.cols, w),
                    target=whole.target.part(h, w),
                    requantize=requantize,
                )
            )
    return result


def _counts(axis: Axis, kernel: int) -> list[tuple[int, Span]]:
    """Output ranges of one axis with the number of taps inside the input."""

    def inside(output: int) -> int:
        first = output * axis.stride - axis.pad
        return max(0, min(first + kernel, axis.size) - max(first, 0))

    runs = [(count, len(list(run))) for count, run in groupby(map(inside, range(axis.out)))]
    ends = np.cumsum([length for _, length in runs]).tolist()
    return [(count, (end - length, end)) for (count, length), end in zip(runs, ends, strict=True)]


def _shifted(axis: Axis, outputs: Span) -> Axis:
    """The axis of a range of the outputs."""
    return replace(axis, out=outputs[1] - outputs[0], pad=axis.pad - outputs[0] * axis.stride)
