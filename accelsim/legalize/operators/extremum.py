"""Minima over height and width, and maxima in other levels than their input's or over windows of
different sizes: what a plain maximum pool is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import I8, Extremum
from accelsim.legalize.expressions import Arguments, output, padded
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.rescale import table_of, unchanged
from accelsim.legalize.windows import (
    Windows,
    adaptive_spans,
    adaptive_windows,
    covers_padding_only,
    misplaced,
    reduced,
    reduced_axes,
    spatial,
    through_indices,
    whole_axes,
    windows_of,
)

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
        return _made(frame, leaf, "max", adaptive_windows(spatial(leaf), outputs))
    windows = windows_of(node, leaf)
    if isinstance(windows, Rejection) or leaf.quantization.same_levels(frame.quantization):
        return None
    if covers_padding_only(leaf, windows):
        return Rejection("a window of it covers padding only")
    return _made(frame, leaf, "max", windows)


def _reduction(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    leaf = leaf_of(frame, node.args[0])
    if leaf is None or not leaf.layout:
        return None
    kind, letters = _REDUCTIONS[node.op], reduced_axes(node, leaf)
    if not letters or letters & {"n", "c"}:
        what = "images" if "n" in letters else "channels"
        return Rejection(f"it takes the {kind}imum over {what}, which the NPU does not")
    if kind == "max" and leaf.quantization.same_levels(frame.quantization):
        return None
    return _made(frame, leaf, kind, whole_axes(leaf, letters))


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
    spans = adaptive_spans(size, outputs)
    return all(set(row) == set(range(*span)) for row, span in zip(rows, spans, strict=True))


def _made(frame: Frame, leaf: Leaf, kind: str, windows: Windows) -> IntegerOp | Rejection:
    source, target = leaf.quantization, frame.quantization
    if frame.rounding == "tflite" and not source.same_levels(target):
        return Rejection("its extremum is quantized to another scale than its input")
    compute = Extremum(
        kind=kind,
        kernel=windows.kernel,
        stride=windows.stride,
        padding=windows.padding,
        table=_table(frame, leaf),
        dilation=windows.dilation,
        adaptive=windows.adaptive is not None,
    )
    return misplaced(frame, leaf, windows) or operator_of(frame, "extremum", (leaf,), compute)


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
    extrema = reduced(op, inside, reduce, fill, "extrema")
    return output(op, lambda *index: table(extrema(*index).astype("int32") + 128), op.op)


OPERATOR = Operator(
    ("extremum",), ("tuple_element", *_REDUCTIONS, *_POOLS), Extremum, read, expression
)
