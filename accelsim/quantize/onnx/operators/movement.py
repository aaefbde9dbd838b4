"""Operators that put numbers into another shape or order, join or repeat them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Stored, ints, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of

op = relax.op


def identity(g: Emitter, node: OnnxNode) -> Any:
    """Identity and Dropout."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise g.fail("gives the mask of a dropout, which is not supported")
    return g.value(node.input(0))


def reshape(g: Emitter, node: OnnxNode) -> Any:
    """Reshape; 0 keeps an extent, -1 takes what is left."""
    x = g.real(node.input(0))
    before = shape_of(x)
    wanted = ints(g.numbers(node.input(1), "shapes"))
    if not node.attributes.get("allowzero", 0):
        if any(not n and i >= len(before) for i, n in enumerate(wanted)):
            raise g.fail(f"cannot give {before} the shape {wanted}")
        wanted = [extent or before[i] for i, extent in enumerate(wanted)]
    known = prod(extent for extent in wanted if extent >= 0)
    if wanted.count(-1) == 1 and known and prod(before) % known == 0:
        wanted[wanted.index(-1)] = prod(before) // known
    if min(wanted, default=1) < 1 or prod(wanted) != prod(before):
        raise g.fail(f"cannot give {before} the shape {wanted}")
    return g.emit(op.reshape(x, wanted))


def flatten(g: Emitter, node: OnnxNode) -> Any:
    """Flatten to two axes."""
    x = g.real(node.input(0))
    shape, axis = shape_of(x), node.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return g.emit(op.reshape(x, [prod(shape[:axis]), prod(shape[axis:])]))


def axes_input(g: Emitter, node: OnnxNode) -> list[int] | None:
    """Axes of an attribute or of the second input."""
    if node.input(1):
        return ints(g.numbers(node.input(1), "axes"))
    return ints(node.attributes["axes"]) if "axes" in node.attributes else None


def squeeze(g: Emitter, node: OnnxNode) -> Any:
    """Squeeze as a reshape."""
    x, axes = g.real(node.input(0)), axes_input(g, node)
    shape = shape_of(x)
    gone = {axis % len(shape) for axis in axes} if axes is not None else None
    kept = [n for i, n in enumerate(shape) if (i not in gone if gone is not None else n != 1)]
    if prod(kept) != prod(shape):
        raise g.fail(f"cannot squeeze axes {axes} of {shape}")
    return g.emit(op.reshape(x, kept))


def unsqueeze(g: Emitter, node: OnnxNode) -> Any:
    """Unsqueeze as a reshape."""
    x, axes = g.real(node.input(0)), axes_input(g, node) or []
    shape = list(shape_of(x))
    for axis in sorted(axis % (len(shape) + len(axes)) for axis in axes):
        shape.insert(axis, 1)
    return g.emit(op.reshape(x, shape))


def transpose(g: Emitter, node: OnnxNode) -> Any:
    """Transpose."""
    x = g.real(node.input(0))
    order = ints(node.attributes.get("perm", range(len(shape_of(x)))[::-1]))
    if sorted(order) != list(range(len(shape_of(x)))):
        raise g.fail(f"cannot order the axes of {shape_of(x)} as {order}")
    return g.emit(op.permute_dims(x, order))


def concat(g: Emitter, node: OnnxNode) -> Any:
    """Concat."""
    parts = [g.real(name) for name in node.inputs]
    return g.emit(op.concat(parts, int(node.attributes["axis"])))


def expand(g: Emitter, node: OnnxNode) -> Any:
    """Expand."""
    x = g.real(node.input(0))
    wanted = tuple(ints(g.numbers(node.input(1), "shapes")))
    try:
        shape = np.broadcast_shapes(shape_of(x), wanted)
    except ValueError:
        raise g.fail(f"cannot expand {shape_of(x)} to {wanted}") from None
    return x if shape == shape_of(x) else g.emit(op.broadcast_to(x, shape))


def tile(g: Emitter, node: OnnxNode) -> Any:
    """Tile."""
    return g.emit(op.tile(g.real(node.input(0)), ints(g.numbers(node.input(1), "repeats"))))


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def pad(g: Emitter, node: OnnxNode) -> Any:
    """Pad; a constant is a number of the input's own kind, an integer of integers."""
    source = g.value(node.input(0))
    x = g.operand(source)
    rank = len(shape_of(x))
    pads = ints(g.numbers(node.input(1), "widths") if node.input(1) else node.attributes["pads"])
    axes = ints(g.numbers(node.input(3), "axes")) if node.input(3) else list(range(rank))
    if len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        raise g.fail(f"has widths {pads} for {len(axes)} axes")
    widths = [0] * 2 * rank
    for place, axis in enumerate(axes):
        widths[2 * (axis % rank)] = pads[place]
        widths[2 * (axis % rank) + 1] = pads[place + len(axes)]
    mode = node.attributes.get("mode", "constant")
    if mode not in _MODES:
        raise g.fail(f"has the unknown mode {mode!r}")
    value = float(node.attributes.get("value", 0.0))
    if node.input(2):
        value = float(g.numbers(node.input(2), "a value").reshape(-1)[0])
    if isinstance(source, Stored):
        levels = g.levels(source)
        value = float((np.float32(value) - np.float32(levels.zero)) * levels.scale)
    return g.emit(op.nn.pad(x, widths, _MODES[mode], value))


def shape(g: Emitter, node: OnnxNode) -> Any:
    """Shape, which is known when the graph is read."""
    value = g.value(node.input(0))
    source = value.var if isinstance(value, Stored) else g.operand(value)
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return np.asarray(shape_of(source)[start:end], np.int64)


def qlinear_concat(g: Emitter, node: OnnxNode) -> Any:
    """QLinearConcat: the output's levels, then each tensor with its own."""
    parts = [
        g.operand(integers(g, *node.inputs[place : place + 3]))
        for place in range(2, len(node.inputs), 3)
    ]
    value = g.emit(op.concat(parts, int(node.attributes["axis"])))
    return g.quantize(value, levels_of(g, *node.inputs[:2]))


CONVERTERS = {
    "Identity": identity,
    "Dropout": identity,
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Concat": concat,
    "Expand": expand,
    "Tile": tile,
    "Pad": pad,
    "Shape": shape,
    "com.microsoft:QLinearConcat": qlinear_concat,
}
RENAMING = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
MOVES = (*RENAMING, "Concat", "Expand", "Tile", "Pad")
