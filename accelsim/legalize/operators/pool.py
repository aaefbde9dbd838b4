"""Windows of one tensor: maxima, averages, and reductions over height and width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Pool2d, Requantize
from accelsim.legalize.expressions import (
    Arguments,
    output,
    output_shape,
    padded,
    requantized,
)
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.multipliers import count_end, mean_end, sum_end
from accelsim.legalize.operators import Operator
from accelsim.legalize.windows import (
    Pair,
    Windows,
    adaptive_bounds,
    adaptive_windows,
    both,
    covers_padding_only,
    inside_counts,
    misplaced,
    reduced,
    reduced_axes,
    spatial,
    through_indices,
    whole_axes,
    windows_of,
)

_LAYOUTS = {3: "ncw", 4: "nchw"}


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A pool or reduction of one quantized tensor."""
    node = through_indices(frame.graph, node)
    reader = _READERS.get(node.op)
    if reader is None:
        return None
    leaf = leaf_of(frame, node.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if not leaf.layout:
        return Rejection(f"its input of shape {leaf.shape} has no place in the NPU")
    return reader(frame, node, leaf)


def _max_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    windows = windows_of(node, leaf)
    if isinstance(windows, Rejection):
        return windows
    if windows.dilation != (1, 1) and covers_padding_only(leaf, windows):
        return Rejection("a window of it covers padding only")
    return _maximum(frame, leaf, windows)


def _average_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    windows = windows_of(node, leaf)
    if isinstance(windows, Rejection):
        return windows
    included = bool(node.value.attrs.count_include_pad)
    if windows.dilation != (1, 1):
        return Rejection("its window is dilated")
    if included and any(windows.overhang):
        return Rejection(
            "its last windows hang over the edge (ceil_mode) and its padding counts "
            "(count_include_pad)"
        )
    return _average(frame, leaf, windows, included)


def _adaptive_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    if leaf.layout != _LAYOUTS.get(len(leaf.shape)):
        return Rejection("its channels are not its second axis")
    sizes, outputs = both(leaf.shape[2:]), both(node.shape[2:])
    windows = adaptive_windows(sizes, outputs)
    if any(size % out for size, out in zip(sizes, outputs, strict=True)):
        return _average(frame, leaf, windows, included=False)
    return _average(frame, leaf, Windows(windows.kernel, windows.kernel), included=True)


def _reduction(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection | None:
    """A mean, sum or maximum over height, width or both."""
    letters = reduced_axes(node, leaf)
    if "c" in letters:
        return None
    if not letters or "n" in letters:
        axes = sorted(leaf.layout.index(letter) for letter in letters)
        return Rejection(f"it reduces axes {axes}, which the NPU does not")
    windows = whole_axes(leaf, letters)
    if node.op == "relax.max":
        return _maximum(frame, leaf, windows)
    source, target = leaf.quantization, frame.quantization
    derive = mean_end if node.op == "relax.mean" else sum_end
    count = prod(windows.kernel)
    end = derive(frame.rounding, source.scale, target.scale, count, _end(frame))
    return _sum(frame, leaf, windows, source.int8_zero_point, ((count, end),))


def _maximum(frame: Frame, leaf: Leaf, windows: Windows) -> IntegerOp | Rejection:
    if not leaf.quantization.same_levels(frame.quantization):
        return Rejection("its maximum is quantized to another scale than its input")
    low, high = frame.int8_limits
    compute = Pool2d(
        kind="max",
        kernel=windows.kernel,
        stride=windows.stride,
        # Where ceil_mode lets a window hang over, padding covers it: padding never wins.
        padding=windows.padding,
        input_zero_point=leaf.quantization.int8_zero_point,
        requantize=None,
        clamp_min=low,
        clamp_max=high,
        dilation=windows.dilation,
    )
    return _checked(frame, "max_pool2d", leaf, compute, windows)


def _average(frame: Frame, leaf: Leaf, windows: Windows, included: bool) -> IntegerOp | Rejection:
    """A mean over each window: of all of it where the padding counts, else of what is inside.

    TFLite divides the sum of stored integers, whose zero point does not count.
    """
    source, target = leaf.quantization, frame.quantization
    padded_windows = any(windows.padding)
    counts = {prod(windows.kernel)}
    if (padded_windows or windows.adaptive) and not included:
        rows, columns = (inside_counts(size, windows, i) for i, size in enumerate(spatial(leaf)))
        counts = {row * column for row in rows for column in columns if row * column}
    if frame.rounding != "tflite":
        ends = tuple(
            (count, mean_end(frame.rounding, source.scale, target.scale, count, _end(frame)))
            for count in sorted(counts, reverse=True)
        )
        return _sum(frame, leaf, windows, source.int8_zero_point, ends)
    if not source.same_levels(target):
        return Rejection("its average is quantized to another scale than its input")
    if padded_windows and included:
        return Rejection("its padding counts (count_include_pad), which TFLite does not define")
    ends = tuple(
        (count, count_end(count, _end(frame, -target.shift)))
        for count in sorted(counts, reverse=True)
    )
    return _sum(frame, leaf, windows, -source.shift, ends)


def _end(frame: Frame, zero_point: int | None = None) -> Requantize:
    """The frame's zero point and limits, with a multiplier of 1."""
    zero = frame.quantization.int8_zero_point if zero_point is None else zero_point
    return Requantize(np.ones(1, np.float32), zero, *frame.int8_limits)


def _sum(
    frame: Frame,
    leaf: Leaf,
    windows: Windows,
    zero_point: int,
    ends: tuple[tuple[int, Requantize | str], ...],
) -> IntegerOp | Rejection:
    """Sums over windows; `ends` by the number of elements that a window covers."""
    usable: list[tuple[int, Requantize]] = []
    for count, end in ends:
        if isinstance(end, str):
            return Rejection(end)
        usable.append((count, end))
    compute = Pool2d(
        kind="sum",
        kernel=windows.kernel,
        stride=windows.stride,
        padding=windows.padding,
        input_zero_point=zero_point,
        requantize=usable[0][1],
        by_count=tuple(usable) if len(usable) > 1 else (),
        adaptive=windows.adaptive is not None,
    )
    return _checked(frame, "avg_pool2d", leaf, compute, windows)


def _checked(
    frame: Frame, op: str, leaf: Leaf, compute: Pool2d, windows: Windows
) -> IntegerOp | Rejection:
    """The operator, if the graph's output lies as windows leave it."""
    return misplaced(frame, leaf, windows) or operator_of(frame, op, (leaf,), compute)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The largest element of each window, or the sum of them requantized."""
    (x,) = arguments.activations
    pool = arguments.values
    if op.compute.kind == "max":
        inside = padded(x, op.compute.padding, "int8", -128, tirx.const(0, "int8"))
        largest = reduced(op, inside, te.max, -128, "largest")
        low, high = (limit.astype("int8") for limit in (pool.clamp_min, pool.clamp_max))
        return output(op, lambda *index: tirx.max(tirx.min(largest(*index), high), low), op.op)
    inside = padded(x, op.compute.padding, "int32", 0, pool.input_zero_point)
    sums = reduced(op, inside, te.sum, 0, "sums")
    if not op.compute.by_count:
        return output(
            op, lambda *index: requantized(sums(*index), pool.requantize, index[3]), op.op
        )
    _, outputs_h, outputs_w, _ = output_shape(op)
    _, height, width, _ = x.shape

    def element(*index: Any) -> Any:
        rows = _covered(index[1], (height, outputs_h), op.compute, 0)
        columns = _covered(index[2], (width, outputs_w), op.compute, 1)
        found = requantized(sums(*index), pool.by_count[0][1], index[3])
        for (number, _), (_, end) in zip(op.compute.by_count[1:], pool.by_count[1:], strict=True):
            this = requantized(sums(*index), end, index[3])
            found = tirx.if_then_else(rows * columns == number, this, found)
        return found

    return output(op, element, op.op)


def _covered(index: Any, sizes: Pair, pool: Pool2d, axis: int) -> Any:
    """How many elements of an axis the window of an output covers; `sizes` of input and output."""
    size, outputs = sizes
    if pool.adaptive:
        first, end = adaptive_bounds(index, size, outputs)
        return end - first
    start = index * pool.stride[axis] - pool.padding[axis]
    return tirx.min(start + pool.kernel[axis], size) - tirx.max(start, 0)


_READERS: Mapping[str, Callable[[Frame, Node, Leaf], IntegerOp | Rejection | None]] = {
    "relax.nn.max_pool1d": _max_pool,
    "relax.nn.max_pool2d": _max_pool,
    "relax.nn.avg_pool1d": _average_pool,
    "relax.nn.avg_pool2d": _average_pool,
    "relax.nn.adaptive_avg_pool1d": _adaptive_pool,
    "relax.nn.adaptive_avg_pool2d": _adaptive_pool,
    "relax.mean": _reduction,
    "relax.sum": _reduction,
    "relax.max": _reduction,
}


OPERATOR = Operator(
    ops=("max_pool2d", "avg_pool2d"),
    starts=("tuple_element", *_READERS),
    compute=Pool2d,
    read=read,
    expression=expression,
)
