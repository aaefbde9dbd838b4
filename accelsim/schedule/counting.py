"""Sums divided by how many elements a window covers: rectangles of the output with one number each.

What comes in: a pooling layer and its axes. What goes out: `Region`s. It must not know tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from accelsim.artifacts import Pool2d, Requantize
from accelsim.errors import ModelError
from accelsim.schedule.view import Span, View
from accelsim.schedule.window import Axis


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of the output whose windows are requantized alike."""

    rows: Axis
    cols: Axis
    target: View
    requantize: Requantize | None


def regions(name: str, pool: Pool2d, rows: Axis, cols: Axis, target: View) -> list[Region]:
    """The whole output, or rectangles with one number of inside elements each."""
    if not pool.by_count:
        return [Region(rows, cols, target, pool.requantize)]
    known = dict(pool.by_count)
    result: list[Region] = []
    for h_count, h in _counts(rows, pool.kernel[0]):
        for w_count, w in _counts(cols, pool.kernel[1]):
            count = h_count * w_count
            # An empty window sums to 0, and 0 times any multiplier is 0.
            requantize = known.get(count) if count else pool.by_count[0][1]
            if requantize is None:
                raise ModelError(
                    f"layer {name}: windows of {count} elements occur, but no requantization for "
                    "them is given"
                )
            part = target.part(h, w)
            result.append(Region(_shifted(rows, h), _shifted(cols, w), part, requantize))
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
