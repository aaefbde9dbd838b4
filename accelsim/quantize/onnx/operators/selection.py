"""Operators that take elements by their place: splits, slices and gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, constant, ints, shape_of

op = relax.op


def split(g: Emitter, node: OnnxNode) -> Any:
    """Split at given lengths, or into as many equal parts as there are outputs."""
    x = g.real(node.input(0))
    axis = node.attributes.get("axis", 0) % len(shape_of(x))
    length, count = shape_of(x)[axis], len(node.outputs)
    given = node.attributes.get("split")
    if node.input(1):
        given = ints(g.numbers(node.input(1), "lengths"))
    each = -(-length // count)
    lengths = list(given) if given else [min(each, length - each * i) for i in range(count)]
    if sum(lengths) != length or len(lengths) != count or min(lengths) < 1:
        raise g.fail(f"cannot split {length} elements into {lengths}")
    if count == 1:
        return x
    parts = g.emit(op.split(x, [int(n) for n in np.cumsum(lengths)[:-1]], axis))
    return tuple(g.emit(relax.TupleGetItem(parts, index)) for index in range(count))


def slice_(g: Emitter, node: OnnxNode) -> Any:
    """Slice with constant bounds."""
    x = g.real(node.input(0))
    shape = shape_of(x)
    if "starts" in node.attributes:
        starts, ends = ints(node.attributes["starts"]), ints(node.attributes["ends"])
        axes, steps = ints(node.attributes.get("axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = (ints(g.numbers(node.input(i), "bounds")) for i in (1, 2))
        axes = ints(g.numbers(node.input(3), "axes")) if node.input(3) else list(range(len(starts)))
        steps = ints(g.numbers(node.input(4), "steps")) if node.input(4) else [1] * len(starts)
    bounds = [
        slice(first, last, step).indices(shape[axis % len(shape)])
        if not (step < 0 and last < -shape[axis % len(shape)])
        else (*slice(first, None, step).indices(shape[axis % len(shape)])[:1], -1, step)
        for axis, first, last, step in zip(axes, starts, ends, steps, strict=True)
    ]
    if any(not len(range(*bound)) for bound in bounds):
        raise g.fail("keeps nothing of its input")
    if all(step > 0 for step in steps):
        lows, highs, by = ([bound[i] for bound in bounds] for i in range(3))
        return g.emit(op.strided_slice(x, [a % len(shape) for a in axes], lows, highs, by))
    for axis, bound in zip(axes, bounds, strict=True):
        x = g.emit(op.take(x, constant(np.arange(*bound, dtype=np.int64)), axis=axis % len(shape)))
    return x


def gather(g: Emitter, node: OnnxNode) -> Any:
    """Gather; constant indices below zero count from the end."""
    x, axis = g.real(node.input(0)), node.attributes.get("axis", 0)
    at = g.value(node.input(1))
    length = shape_of(x)[axis]
    if isinstance(at, np.ndarray):
        if at.size and not -length <= int(at.min()) <= int(at.max()) < length:
            raise g.fail(f"takes elements beyond the {length} of its axis")
        at = np.where(at < 0, at + length, at)
    return g.emit(op.take(x, g.operand(at), axis=axis % len(shape_of(x)), mode="clip"))


def gather_nd(g: Emitter, node: OnnxNode) -> Any:
    """GatherND."""
    return g.emit(
        op.gather_nd(
            g.real(node.input(0)), g.real(node.input(1)), int(node.attributes.get("batch_dims", 0))
        )
    )


def gather_elements(g: Emitter, node: OnnxNode) -> Any:
    """GatherElements."""
    axis = int(node.attributes.get("axis", 0))
    return g.emit(op.gather_elements(g.real(node.input(0)), g.real(node.input(1)), axis))


CONVERTERS = {
    "Split": split,
    "Slice": slice_,
    "Gather": gather,
    "GatherND": gather_nd,
    "GatherElements": gather_elements,
}
MOVES = tuple(CONVERTERS)
