"""Operators that take elements by place: gathers, scatters, slices, pads and triangles.

What comes in: a node whose shapes and axes are constants. What goes out: functions of PyTorch.
Constant places are made positive here; places computed by the model may be negative, too, except
for the rows of a table (an embedding), which PyTorch then refuses.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode

Array = np.ndarray


def take(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Slice."""
    shape = graph.shape(node.input(0))
    starts = graph.numbers(node, 1, "starts") or ()
    ends = graph.numbers(node, 2, "ends") or ()
    axes = graph.numbers(node, 3, "axes") or tuple(range(len(starts)))
    steps = graph.numbers(node, 4) or (1,) * len(starts)
    chosen = [slice(None)] * len(shape)
    backward: dict[int, Array] = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = axis % len(shape)
        if step > 0:
            chosen[axis] = slice(start, min(end, (1 << 31) - 1), step)
        elif step == 0:
            raise graph.wrong(node, "has the step 0")
        else:  # what lies before the first element is the end of all, not the last element
            last = None if end < -shape[axis] else end
            backward[axis] = np.arange(shape[axis])[slice(start, last, step)]
    x = graph.node(node.input(0))
    if not backward or any(one != slice(None) for one in chosen):
        name = f"{node.name}/forward" if backward else node.name
        x = graph.net.call(name, operator.getitem, x, tuple(chosen))
    return _chosen(graph, node.name, x, backward)


def _chosen(graph: OnnxGraph, name: str, x: fx.Node, places: dict[int, Array]) -> fx.Node:
    """Constant places of some axes, one axis after the other."""
    for number, (axis, one) in enumerate(sorted(places.items())):
        called = name if number == len(places) - 1 else f"{name}/{axis}"
        index = graph.net.constant(np.asarray(one, np.int64).copy())
        x = graph.net.call(called, torch.index_select, x, axis, index)
    return x


MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


def pad(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Pad with a constant, or by reflection, repetition or wrapping; negative pads cut off."""
    shape, mode = graph.shape(node.input(0)), str(node.attributes.get("mode", "constant"))
    before, after = _pads(graph, node, len(shape))
    x, value = graph.node(node.input(0)), graph.constant(node.input(2)) if node.input(2) else None
    if mode == "constant" and node.input(2) and value is None:
        raise graph.wrong(node, "computes what it pads with")
    number = float(node.attributes.get("value", 0.0)) if value is None else value.item()
    if mode == "constant" and min(*before, *after) < 0:
        ends = zip(before, after, strict=True)
        kept = tuple(slice(max(0, -a), b if b < 0 else None) for a, b in ends)
        more = max(*before, *after) > 0
        x = graph.net.call(f"{node.name}/cut" if more else node.name, operator.getitem, x, kept)
        if not more:
            return x
        before, after = ([max(0, one) for one in side] for side in (before, after))
    sides = [side for ends in zip(before, after, strict=True) for side in ends]
    sides = [
        side for axis in reversed(range(len(shape))) for side in sides[2 * axis : 2 * axis + 2]
    ]
    least = 2 if mode == "constant" else 2 * max(1, len(shape) - 2)  # else PyTorch pads just these
    while len(sides) > least and not any(sides[-2:]):
        sides = sides[:-2]
    if mode == "constant":
        return graph.net.call(node.name, nn.functional.pad, x, sides, mode=mode, value=number)
    if mode in MODES and len(sides) <= least and len(shape) > 2 and min(sides) >= 0:
        return graph.net.call(node.name, nn.functional.pad, x, sides, mode=MODES[mode])
    kinds: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in kinds:
        raise graph.wrong(node, f"pads by '{mode}'")
    places = {}
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        line = np.arange(max(0, -low), shape[axis] - max(0, -high))
        if low or high:
            places[axis] = np.pad(line, (max(0, low), max(0, high)), mode=kinds[mode])
    return _chosen(graph, node.name, x, places) if places else x


def _pads(graph: OnnxGraph, node: OnnxNode, rank: int) -> tuple[list[int], list[int]]:
    """Elements before and after each axis."""
    given = graph.numbers(node, 1, "pads") or ()
    axes = graph.numbers(node, 3) or tuple(range(rank))
    half = len(axes)
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis % rank], after[axis % rank] = given[place], given[place + half]
    return before, after


def _places(graph: OnnxGraph, node: OnnxNode, name: str, extent: int) -> fx.Node | Array:
    """Places along an axis, made positive: an array where they are constants."""
    values = graph.constant(name)
    if values is not None:
        if ((values < -extent) | (values >= extent)).any():
            raise graph.wrong(node, f"gathers a place outside of the {extent} that there are")
        return np.asarray(np.asarray(values, np.int64) % extent)
    index = graph.node(name)
    below = graph.net.call(f"{node.name}/below", torch.lt, index, 0)
    wrapped = graph.net.call(f"{node.name}/wrap", operator.add, index, extent)
    chosen = graph.net.call(f"{node.name}/places", torch.where, below, wrapped, index)
    return graph.net.method(f"{node.name}/int64", "to", chosen, torch.int64)


def _held(graph: OnnxGraph, places: fx.Node | Array) -> fx.Node:
    return graph.net.constant(places.copy()) if isinstance(places, np.ndarray) else places


def gather(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Gather: rows of a table, or places of an axis."""
    shape = graph.shape(node.input(0))
    axis = int(node.attributes.get("axis", 0)) % len(shape)
    table = graph.node(node.input(0))
    if graph.constant(node.input(1)) is None and axis == 0 and len(shape) == 2:
        return graph.net.call(node.name, nn.functional.embedding, graph.node(node.input(1)), table)
    places = _places(graph, node, node.input(1), shape[axis])
    if isinstance(places, np.ndarray) and places.ndim == 0:
        return graph.net.call(node.name, torch.select, table, axis, int(places))
    inner = graph.shape(node.input(1))
    if len(inner) == 1:
        index = _held(graph, places)
        return graph.net.call(node.name, torch.index_select, table, axis, index)
    if isinstance(places, np.ndarray):
        flat = graph.net.constant(places.reshape(-1).copy())
    else:
        flat = graph.net.call(f"{node.name}/flat", torch.reshape, places, (-1,))
    taken = graph.net.call(f"{node.name}/select", torch.index_select, table, axis, flat)
    final = (*shape[:axis], *inner, *shape[axis + 1 :])
    return graph.net.call(node.name, torch.reshape, taken, final)


def gather_elements(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GatherElements."""
    shape = graph.shape(node.input(0))
    axis = int(node.attributes.get("axis", 0)) % len(shape)
    index = _held(graph, _places(graph, node, node.input(1), shape[axis]))
    return graph.net.call(node.name, torch.gather, graph.node(node.input(0)), axis, index)


def gather_nd(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GatherND: constant places, or those that the model computes, of the first axes."""
    shape, places = graph.shape(node.input(0)), graph.constant(node.input(1))
    batches = int(node.attributes.get("batch_dims", 0))
    if places is None:
        return graph.net.call(
            node.name, operator.getitem, graph.node(node.input(0)), _index_of(graph, node, batches)
        )
    depth = batches + places.shape[-1]
    extents = np.array(shape[batches:depth])
    if ((places < -extents) | (places >= extents)).any():
        raise graph.wrong(node, f"gathers a place outside of the extents {tuple(extents)}")
    columns = [
        *_batches(places.shape, batches),
        *np.moveaxis(places.astype(np.int64) % extents, -1, 0),
    ]
    flat = np.ravel_multi_index(np.broadcast_arrays(*columns), shape[:depth])
    rows = (int(np.prod(shape[:depth], dtype=np.int64)), *shape[depth:])
    x = graph.net.call(f"{node.name}/rows", torch.reshape, graph.node(node.input(0)), rows)
    index = graph.net.constant(np.array(flat, np.int64).reshape(-1))
    taken = graph.net.call(f"{node.name}/select", torch.index_select, x, 0, index)
    final = (*flat.shape, *shape[depth:])
    return graph.net.call(node.name, torch.reshape, taken, final)


def _batches(shape: tuple[int, ...], count: int) -> list[Array]:
    """A place of each batch axis for places of a shape, whose last axis has the coordinates."""
    axes = shape[:-1]
    lines = [
        np.arange(axes[k]).reshape([-1 if k == j else 1 for j in range(len(axes))])
        for k in range(count)
    ]
    return [np.broadcast_to(line, axes) for line in lines]


def _index_of(graph: OnnxGraph, node: OnnxNode, batches: int = 0) -> tuple[fx.Node, ...]:
    """What indexes a tensor: one tensor of places for each of its first axes."""
    inner = graph.shape(node.input(1))
    values = graph.constant(node.input(1))
    ahead = [graph.net.constant(one.copy()) for one in _batches(inner, batches)]
    if values is not None:
        columns = np.moveaxis(values.astype(np.int64), -1, 0)
        return (*ahead, *(graph.net.constant(one.copy()) for one in columns))
    index = graph.node(node.input(1))
    selected = [
        graph.net.call(f"{node.name}/places_{k}", torch.select, index, -1, k)
        for k in range(inner[-1])
    ]
    return (*ahead, *selected)


def scatter_elements(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """ScatterElements, and the older Scatter."""
    shape = graph.shape(node.input(0))
    axis = int(node.attributes.get("axis", 0)) % len(shape)
    index = _held(graph, _places(graph, node, node.input(1), shape[axis]))
    x, values = graph.node(node.input(0)), graph.node(node.input(2))
    how = str(node.attributes.get("reduction", "none"))
    if how == "none":
        return graph.net.call(node.name, torch.scatter, x, axis, index, values)
    kinds = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return graph.net.call(node.name, torch.scatter_reduce, x, axis, index, values, kinds[how])


def scatter_nd(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """ScatterND that puts or adds."""
    how = str(node.attributes.get("reduction", "none"))
    if how not in ("none", "add"):
        raise graph.wrong(node, f"scatters by '{how}'")
    x, values = graph.node(node.input(0)), graph.node(node.input(2))
    index = _index_of(graph, node)
    return graph.net.call(node.name, torch.index_put, x, index, values, accumulate=how == "add")


def one_hot(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """OneHot of a constant depth: what is outside of it has no place."""
    depth = graph.numbers(node, 1)
    values = graph.constant(node.input(2))
    if depth is None or values is None:
        raise graph.wrong(node, "computes its depth or its values")
    shape, net = graph.shape(node.input(0)), graph.net
    axis = int(node.attributes.get("axis", -1)) % (len(shape) + 1)
    index = net.method(f"{node.name}/int64", "to", graph.node(node.input(0)), torch.int64)
    below = net.call(f"{node.name}/below", torch.lt, index, 0)
    wrapped = net.call(f"{node.name}/wrap", operator.add, index, depth[0])
    places = net.call(f"{node.name}/places", torch.where, below, wrapped, index)
    column = net.call(f"{node.name}/column", torch.unsqueeze, places, axis)
    line = np.arange(depth[0]).reshape([-1 if k == axis else 1 for k in range(len(shape) + 1)])
    chosen = net.call(f"{node.name}/equal", torch.eq, column, net.constant(line))
    off, on = (net.constant(np.array(one)) for one in values.reshape(-1))
    return net.call(node.name, torch.where, chosen, on, off)


def triangle(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Trilu: what lies above a diagonal, or below it."""
    given = graph.numbers(node, 1) or (0,)
    kind = torch.triu if node.attributes.get("upper", 1) else torch.tril
    return graph.net.call(node.name, kind, graph.node(node.input(0)), given[0])


def eye(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """EyeLike: a constant, since shapes are."""
    rows, columns = graph.shape(node.input(0))
    known = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 2: "uint8", 3: "int8"}
    given = node.attributes.get("dtype")
    if given is not None and int(given) not in known:
        raise graph.wrong(node, f"gives numbers of type {given}")
    dtype = graph.dtype(node.input(0)) if given is None else known[int(given)]
    return graph.net.constant(np.eye(rows, columns, int(node.attributes.get("k", 0)), dtype=dtype))


def tile(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Tile."""
    counts = graph.numbers(node, 1)
    if counts is None:
        raise graph.wrong(node, "names no counts")
    return graph.net.call(node.name, torch.tile, graph.node(node.input(0)), counts)


RULES: dict[str, Any] = {
    "Slice": take,
    "Pad": pad,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements,
    "Scatter": scatter_elements,
    "ScatterND": scatter_nd,
    "OneHot": one_hot,
    "Trilu": triangle,
    "EyeLike": eye,
    "Tile": tile,
}
