"""Minima over height and width, and maxima in other levels than their input's or over windows of
different sizes: what a plain maximum pool is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import I8, Extremum
from accelsim.legalize.expressions import Arguments, output, output_shape, padded
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.operators import Operator
from accelsim.legalize.operators.pool import (
    Windows,
    inside_counts,
    through_indices,
    windows_of,
)
from accelsim.legalize.rescale import table_of, unchanged

_REDUCTIONS = {"relax.min": "min", "relax.max": "max"}
_POOLS = ("relax.nn.max_pool1d", "relax.nn.max_pool2d")


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """An extremum of one quantized tensor that `operators.pool` does not read."""
    node = through_indices(frame.graph, node)
    if node.op in _REDUCTIONS:
        return _reduction(frame, node)
    if node.op not in _POOLS:
        return None
    leaf, outputs = _adaptive(frame, node)
    if leaf is None:
        leaf = leaf_of(frame, node.args[0])
    if leaf is None or not leaf.layout:
        return None  # the pool says why
    if outputs is not None:
        sizes = nhwc(leaf.shape, leaf.layout)[1:3]
        kernel = tuple(
            max(end - start for start, end in _adaptive_spans(size, out))
            for size, out in zip(sizes, outputs, strict=True)
        )
        return _made(frame, leaf, "max", Windows(kernel, (1, 1), adaptive=outputs))  # type: ignore[arg-type]
    windows = windows_of(node, leaf)
    if isinstance(windows, Rejection) or leaf.quantization.same_levels(frame.quantization):
        return None
    _, height, width, _ = nhwc(leaf.shape, leaf.layout)
    if 0 in inside_counts(height, windows, 0) | inside_counts(width, windows, 1):
        return Rejection("a window of it covers padding only")
    return _made(frame, leaf, "max", windows)


def _reduction(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    leaf = leaf_of(frame, node.args[0])
    if leaf is None or not leaf.layout:
        return None
    kind, rank, axis = _REDUCTIONS[node.op], len(leaf.shape), node.value.attrs.axis
    axes = range(rank) if axis is None else sorted(int(value) % rank for value in axis)
    letters = {leaf.layout[one] for one in axes}
    if not letters or letters & {"n", "c"}:
        what = "images" if "n" in letters else "channels"
        return Rejection(f"it takes the {kind}imum over {what}, which the NPU does not")
    if kind == "max" and leaf.quantization.same_levels(frame.quantization):
        return None
    sizes = nhwc(leaf.shape, leaf.layout)
    kernel = (sizes[1] if "h" in letters else 1, sizes[2] if "w" in letters else 1)
    return _made(frame, leaf, kind, Windows(kernel, kernel))


def _adaptive(frame: Frame, node: Node) -> tuple[Leaf | None, tuple[int, int] | None]:
    """The tensor of a maximum over windows of different sizes, and its outputs along h and w.

    Its import repeats elements so that the windows become one size and lie side by side.
    """
    graph, expr, rank = frame.graph, node.args[0], len(node.shape)
    found: dict[int, int] = {}
    for axis in range(rank - 1, 1, -1):
        taken = graph.producer(expr)
        if taken is None or taken.op != "relax.take" or int(taken.value.attrs.axis) != axis:
            return None, None
        window = int(node.value.attrs.pool_size[axis - 2])
        if not _is_adaptive(graph, taken, window, node.shape[axis]):
            return None, None
        found[axis], expr = node.shape[axis], taken.args[0]
    leaf = leaf_of(frame, expr)
    if leaf is None or leaf.layout != {3: "ncw", 4: "nchw"}.get(rank):
        return None, None
    return leaf, (found[2] if rank == 4 else 1, found[rank - 1])


def _is_adaptive(graph: Graph, taken: Node, window: int, outputs: int) -> bool:
    """Whether each window's indices are those of an adaptive pool."""
    indices = graph.constant(taken.args[1])
    if indices is None or indices.size != window * outputs:
        return False
    size = int(taken.args[0].ty.shape[int(taken.value.attrs.axis)])
    rows = indices.reshape(outputs, window)
    spans = _adaptive_spans(size, outputs)
    return all(set(row) == set(range(*span)) for row, span in zip(rows, spans, strict=True))


def _adaptive_spans(size: int, outputs: int) -> list[tuple[int, int]]:
    return [(i * size // outputs, -(-(i + 1) * size // outputs)) for i in range(outputs)]


def _made(frame: Frame, leaf: Leaf, kind: str, windows: Windows) -> IntegerOp | Rejection:
    source, target = leaf.quantization, frame.quantization
    if frame.rounding == "tflite" and not source.same_levels(target):
        return Rejection("its extremum is quantized to another scale than its input")
    n, height, width, c = nhwc(leaf.shape, leaf.layout)
    rows, columns = windows.adaptive or (
        (size + windows.padding[i] + windows.padding[2 + i] - reach) // windows.stride[i] + 1
        for i, size, reach in (
            (i, size, (windows.kernel[i] - 1) * windows.dilation[i] + 1)
            for i, size in ((0, height), (1, width))
        )
    )
    if frame.layout and nhwc(frame.shape, frame.layout) != (n, rows, columns, c):
        return Rejection(f"its result of shape {frame.shape} lies otherwise than its windows")
    compute = Extremum(
        kind=kind,
        kernel=windows.kernel,
        stride=windows.stride,
        padding=windows.padding,
        table=_table(frame, leaf),
        dilation=windows.dilation,
        adaptive=windows.adaptive is not None,
    )
    return operator_of(frame, "extremum", (leaf,), compute)


def _table(frame: Frame, leaf: Leaf) -> I8:
    """What becomes of each extremum."""
    source, target, limits = leaf.quantization, frame.quantization, frame.int8_limits
    if not source.same_levels(target):
        return table_of(source, target, frame.rounding, limits)
    levels = np.arange(-128, 128)
    kept = levels if unchanged(source, target, limits) else np.clip(levels, *limits)
    return kept.astype(np.int8)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """table[e + 128] of each window's extremum e."""
    (x,) = arguments.activations
    own, table = op.compute, arguments.values.table
    fill, reduce = (-128, te.max) if own.kind == "max" else (127, te.min)
    inside = padded(x, own.padding, "int8", fill, tirx.const(0, "int8"))
    taps = [te.reduce_axis((0, own.kernel[i]), name=f"tap_{'hw'[i]}") for i in (0, 1)]
    sizes = (int(inside.shape[1]), int(inside.shape[2]))
    outputs = output_shape(op)[1:3]

    def element(image: Any, row: Any, column: Any, channel: Any) -> Any:
        places = (row, column)
        if not own.adaptive:
            at = [places[i] * own.stride[i] + taps[i] * own.dilation[i] for i in (0, 1)]
            return reduce(inside(image, *at, channel), axis=taps)
        at = [te.floordiv(places[i] * sizes[i], outputs[i]) + taps[i] for i in (0, 1)]
        ends = [te.floordiv((places[i] + 1) * sizes[i] - 1, outputs[i]) for i in (0, 1)]
        here = tirx.all(*(at[i] <= ends[i] for i in (0, 1)))
        value = tirx.if_then_else(here, inside(image, *at, channel), tirx.const(fill, "int8"))
        return reduce(value, axis=taps)

    extrema = te.compute(output_shape(op), element, name="extrema")
    return output(op, lambda *index: table(extrema(*index).astype("int32") + 128), op.op)


OPERATOR = Operator(
    ("extremum",), ("tuple_element", *_REDUCTIONS, *_POOLS), Extremum, read, expression
)
