"""Windows of one tensor: maxima, averages, and reductions over height and width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.multipliers import count_end, mean_end, sum_end
from accelsim.legalize.operators import Operator

_LAYOUTS = {3: "ncw", 4: "nchw"}
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Windows:
    """How windows move over (h, w); `padding` is top, left, bottom, right.

    Of the padding, `overhang` rows and columns are there only because the last windows hang over
    the edge.
    """

    kernel: Pair
    stride: Pair
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    overhang: Pair = (0, 0)
    dilation: Pair = (1, 1)
    adaptive: Pair | None = None  # outputs, where windows differ


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


def through_indices(graph: Graph, node: Node) -> Node:
    """The pool behind element 0 of a (values, indices) tuple."""
    if node.op == "tuple_element" and int(node.value.index) == 0:
        pair = graph.producer(node.args[0])
        if pair is not None and pair.op == "tuple":
            values = graph.producer(pair.args[0])
            return values if values is not None else node
    return node


def _max_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    windows = windows_of(node, leaf)
    if isinstance(windows, Rejection):
        return windows
    _, height, width, _ = nhwc(leaf.shape, leaf.layout)
    dilated = windows.dilation != (1, 1)
    if dilated and 0 in inside_counts(height, windows, 0) | inside_counts(width, windows, 1):
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
    rows, columns = (
        max(_adaptive_counts(size, out)) for size, out in zip(sizes, outputs, strict=True)
    )
    if any(size % out for size, out in zip(sizes, outputs, strict=True)):
        windows = Windows((rows, columns), (1, 1), adaptive=outputs)
        return _average(frame, leaf, windows, included=False)
    return _average(frame, leaf, Windows((rows, columns), (rows, columns)), included=True)


def _adaptive_counts(size: int, outputs: int) -> set[int]:
    """Elements of the windows of an adaptive pool along one axis."""
    return {-(-(i + 1) * size // outputs) - i * size // outputs for i in range(outputs)}


def _reduction(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection | None:
    """A mean, sum or maximum over height, width or both."""
    axis = node.value.attrs.axis
    rank = len(leaf.shape)
    axes = range(rank) if axis is None else sorted(int(value) % rank for value in axis)
    letters = {leaf.layout[one] for one in axes}
    if "c" in letters:
        return None
    if not letters or "n" in letters:
        return Rejection(f"it reduces axes {list(axes)}, which the NPU does not")
    sizes = nhwc(leaf.shape, leaf.layout)
    kernel = (sizes[1] if "h" in letters else 1, sizes[2] if "w" in letters else 1)
    windows = Windows(kernel, kernel)
    if node.op == "relax.max":
        return _maximum(frame, leaf, windows)
    source, target = leaf.quantization, frame.quantization
    derive = mean_end if node.op == "relax.mean" else sum_end
    end = derive(frame.rounding, source.scale, target.scale, prod(kernel), _end(frame))
    return _sum(frame, leaf, windows, source.int8_zero_point, ((prod(kernel), end),))


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
        _, height, width, _ = nhwc(leaf.shape, leaf.layout)
        rows, columns = (inside_counts(size, windows, i) for i, size in ((0, height), (1, width)))
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
    n, height, width, c = nhwc(leaf.shape, leaf.layout)
    rows, columns = windows.adaptive or (
        (size + windows.padding[i] + windows.padding[2 + i] - _reach(windows, i))
        // windows.stride[i]
        + 1
        for i, size in ((0, height), (1, width))
    )
    if frame.layout and nhwc(frame.shape, frame.layout) != (n, rows, columns, c):
        return Rejection(f"its result of shape {frame.shape} lies otherwise than its windows")
    return operator_of(frame, op, (leaf,), compute)


def windows_of(node: Node, leaf: Leaf) -> Windows | Rejection:
    """A pool's windows from its attributes, or why the NPU has no such."""
    attrs = node.value.attrs
    if str(attrs.layout).lower() != leaf.layout:
        return Rejection(f"its layout is {attrs.layout}, and its tensor's {leaf.layout.upper()}")
    kernel, stride = both(attrs.pool_size), both(attrs.strides)
    plain = Windows(kernel, stride, dilation=both(attrs.dilation))
    numbers = [int(value) for value in attrs.padding]
    half = len(numbers) // 2
    (top, left), (bottom, right) = both(numbers[:half], 0), both(numbers[half:], 0)
    _, height, width, _ = nhwc(leaf.shape, leaf.layout)
    outputs = nhwc(node.shape, leaf.layout)[1:3]
    below = max(0, (outputs[0] - 1) * stride[0] + _reach(plain, 0) - height - top - bottom)
    behind = max(0, (outputs[1] - 1) * stride[1] + _reach(plain, 1) - width - left - right)
    padding = (top, left, bottom + below, right + behind)
    return replace(plain, padding=padding, overhang=(below, behind))


def _reach(windows: Windows, axis: int) -> int:
    """Rows or columns from the first to the last of a window."""
    return (windows.kernel[axis] - 1) * windows.dilation[axis] + 1


def both(values: Any, missing: int = 1) -> Pair:
    """One or two numbers as those of height and width."""
    numbers = [int(value) for value in values]
    first, second = (missing, *numbers) if len(numbers) == 1 else numbers
    return first, second


def inside_counts(size: int, windows: Windows, axis: int) -> set[int]:
    """How many elements of an axis a window may cover."""
    if windows.adaptive is not None:
        return _adaptive_counts(size, windows.adaptive[axis])
    before, after = windows.padding[axis], windows.padding[2 + axis]
    apart, reach = windows.dilation[axis], _reach(windows, axis)
    starts = range(-before, size + after - reach + 1, windows.stride[axis])
    return {sum(0 <= at < size for at in range(one, one + reach, apart)) for one in starts}


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The largest element of each window, or the sum of them requantized."""
    (x,) = arguments.activations
    pool = arguments.values
    if op.compute.kind == "max":
        inside = padded(x, op.compute.padding, "int8", -128, tirx.const(0, "int8"))
        largest = _window_of(op, inside, te.max, "largest")
        low, high = (limit.astype("int8") for limit in (pool.clamp_min, pool.clamp_max))
        return output(op, lambda *index: tirx.max(tirx.min(largest(*index), high), low), op.op)
    inside = padded(x, op.compute.padding, "int32", 0, pool.input_zero_point)
    sums = _window_of(op, inside, te.sum, "sums")
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
        return _adaptive_end(index, size, outputs) - te.floordiv(index * size, outputs)
    start = index * pool.stride[axis] - pool.padding[axis]
    return tirx.min(start + pool.kernel[axis], size) - tirx.max(start, 0)


def _adaptive_end(index: Any, size: int, outputs: int) -> Any:
    return te.floordiv((index + 1) * size + outputs - 1, outputs)


def _window_of(op: IntegerOp, inside: Any, reduce: Any, name: str) -> Any:
    """The reduction of each window, (n, h, w, c)."""
    pool = op.compute
    taps = [te.reduce_axis((0, pool.kernel[i]), name=f"tap_{'hw'[i]}") for i in (0, 1)]
    sizes = (int(inside.shape[1]), int(inside.shape[2]))
    outputs = output_shape(op)[1:3]

    def element(image: Any, row: Any, column: Any, channel: Any) -> Any:
        places = (row, column)
        if not pool.adaptive:
            at = [places[i] * pool.stride[i] + taps[i] * pool.dilation[i] for i in (0, 1)]
            return reduce(inside(image, *at, channel), axis=taps)
        at = [te.floordiv(places[i] * sizes[i], outputs[i]) + taps[i] for i in (0, 1)]
        here = tirx.all(*(at[i] < _adaptive_end(places[i], sizes[i], outputs[i]) for i in (0, 1)))
        value = inside(image, *at, channel)
        return reduce(tirx.if_then_else(here, value, tirx.const(0, inside.dtype)), axis=taps)

    return te.compute(output_shape(op), element, name=name)


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
