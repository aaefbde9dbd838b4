"""Windows that move over height and width: what they cover, and their reduction on TVM.

What comes in: a node of a pool or reduction with the tensor that it reads, or integers. What goes
out: `Windows`, counts, expressions. It must not know what is made of a window's elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tvm import te, tirx

from accelsim.artifacts import Extremum, Pool2d
from accelsim.legalize.expressions import output_shape
from accelsim.legalize.frame import Frame, Leaf
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc

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

    def reach(self, axis: int) -> int:
        """Rows or columns from the first to the last of a window."""
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def outputs(self, sizes: Pair) -> Pair:
        """How many windows there are over rows and columns of an input."""
        if self.adaptive is not None:
            return self.adaptive
        rows, columns = (
            (size + self.padding[i] + self.padding[2 + i] - self.reach(i)) // self.stride[i] + 1
            for i, size in enumerate(sizes)
        )
        return rows, columns


def through_indices(graph: Graph, node: Node) -> Node:
    """The pool behind element 0 of a (values, indices) tuple."""
    if node.op == "tuple_element" and int(node.value.index) == 0:
        pair = graph.producer(node.args[0])
        if pair is not None and pair.op == "tuple":
            values = graph.producer(pair.args[0])
            return values if values is not None else node
    return node


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
    height, width = spatial(leaf)
    outputs = nhwc(node.shape, leaf.layout)[1:3]
    below = max(0, (outputs[0] - 1) * stride[0] + plain.reach(0) - height - top - bottom)
    behind = max(0, (outputs[1] - 1) * stride[1] + plain.reach(1) - width - left - right)
    padding = (top, left, bottom + below, right + behind)
    return replace(plain, padding=padding, overhang=(below, behind))


def reduced_axes(node: Node, leaf: Leaf) -> set[str]:
    """Letters of the axes of a tensor that a reduction goes over; empty where it goes over none."""
    axis, rank = node.value.attrs.axis, len(leaf.shape)
    axes = range(rank) if axis is None else (int(value) % rank for value in axis)
    return {leaf.layout[one] for one in axes}


def whole_axes(leaf: Leaf, letters: set[str]) -> Windows:
    """One window over all of the height, the width or both."""
    height, width = spatial(leaf)
    kernel = (height if "h" in letters else 1, width if "w" in letters else 1)
    return Windows(kernel, kernel)


def misplaced(frame: Frame, leaf: Leaf, windows: Windows) -> Rejection | None:
    """Why the graph's output does not lie as windows leave it, or None."""
    n, *_, c = nhwc(leaf.shape, leaf.layout)
    expected = (n, *windows.outputs(spatial(leaf)), c)
    if frame.layout and nhwc(frame.shape, frame.layout) != expected:
        return Rejection(f"its result of shape {frame.shape} lies otherwise than its windows")
    return None


def spatial(leaf: Leaf) -> Pair:
    """Height and width of a tensor."""
    _, height, width, _ = nhwc(leaf.shape, leaf.layout)
    return height, width


def both(values: Any, missing: int = 1) -> Pair:
    """One or two numbers as those of height and width."""
    numbers = [int(value) for value in values]
    first, second = (missing, *numbers) if len(numbers) == 1 else numbers
    return first, second


def covers_padding_only(leaf: Leaf, windows: Windows) -> bool:
    """Whether a window has no element of the tensor in it."""
    return any(0 in inside_counts(size, windows, i) for i, size in enumerate(spatial(leaf)))


def inside_counts(size: int, windows: Windows, axis: int) -> set[int]:
    """How many elements of an axis a window may cover."""
    if windows.adaptive is not None:
        return {end - start for start, end in adaptive_spans(size, windows.adaptive[axis])}
    before, after = windows.padding[axis], windows.padding[2 + axis]
    apart, reach = windows.dilation[axis], windows.reach(axis)
    starts = range(-before, size + after - reach + 1, windows.stride[axis])
    return {sum(0 <= at < size for at in range(one, one + reach, apart)) for one in starts}


def adaptive_windows(sizes: Pair, outputs: Pair) -> Windows:
    """Windows of an adaptive pool; `kernel` is the largest along each axis."""
    height, width = (
        max(end - start for start, end in adaptive_spans(size, out))
        for size, out in zip(sizes, outputs, strict=True)
    )
    return Windows((height, width), (1, 1), adaptive=outputs)


def adaptive_spans(size: int, outputs: int) -> list[tuple[int, int]]:
    """Start and end of each window of an adaptive pool along one axis."""
    return [(i * size // outputs, -(-(i + 1) * size // outputs)) for i in range(outputs)]


def adaptive_bounds(index: Any, size: int, outputs: int) -> tuple[Any, Any]:
    """The same of one window, as expressions of its index."""
    start, end = index * size, (index + 1) * size + outputs - 1
    return te.floordiv(start, outputs), te.floordiv(end, outputs)


def reduced(op: IntegerOp, inside: Any, reduce: Any, neutral: int, name: str) -> Any:
    """The reduction of each window over the padded tensor `inside`, (n, h, w, c)."""
    own: Pool2d | Extremum = op.compute
    taps = [te.reduce_axis((0, own.kernel[i]), name=f"tap_{'hw'[i]}") for i in (0, 1)]
    sizes = (int(inside.shape[1]), int(inside.shape[2]))
    outputs = output_shape(op)[1:3]

    def element(image: Any, row: Any, column: Any, channel: Any) -> Any:
        places = (row, column)
        if not own.adaptive:
            at = [places[i] * own.stride[i] + taps[i] * own.dilation[i] for i in (0, 1)]
            return reduce(inside(image, *at, channel), axis=taps)
        bounds = [adaptive_bounds(places[i], sizes[i], outputs[i]) for i in (0, 1)]
        at = [start + tap for (start, _), tap in zip(bounds, taps, strict=True)]
        here = tirx.all(*(one < end for one, (_, end) in zip(at, bounds, strict=True)))
        value, nothing = inside(image, *at, channel), tirx.const(neutral, inside.dtype)
        return reduce(tirx.if_then_else(here, value, nothing), axis=taps)

    return te.compute(output_shape(op), element, name=name)
