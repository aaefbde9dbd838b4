"""Operators that choose, order and repeat elements, and reductions.

What comes in: a node whose shapes and axes are constants. What goes out: functions of PyTorch.
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

DTYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 11: torch.float64}


def reshape(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Reshape, Squeeze, Unsqueeze, Flatten: the shape is that of the result."""
    shape = graph.shape(node.outputs[0])
    return graph.net.call(node.name, torch.reshape, graph.node(node.input(0)), shape)


def transpose(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Transpose."""
    rank = len(graph.shape(node.input(0)))
    order = tuple(node.attributes.get("perm", tuple(reversed(range(rank)))))
    return graph.net.call(node.name, torch.permute, graph.node(node.input(0)), order)


def concat(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Concat."""
    parts = [graph.node(name) for name in node.inputs]
    return graph.net.call(node.name, torch.cat, parts, dim=int(node.attributes["axis"]))


def split(graph: OnnxGraph, node: OnnxNode) -> tuple[fx.Node, ...]:
    """Split into parts as long as the results are."""
    axis = int(node.attributes.get("axis", 0))
    lengths = [graph.shape(name)[axis] for name in node.outputs]
    parts = graph.net.call(node.name, torch.split, graph.node(node.input(0)), lengths, dim=axis)
    items = range(len(lengths))
    return tuple(graph.net.call(node.name, operator.getitem, parts, n) for n in items)


def take(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Slice with positive steps."""
    rank = len(graph.shape(node.input(0)))
    starts = graph.numbers(node, 1, "starts") or ()
    ends = graph.numbers(node, 2, "ends") or ()
    axes = graph.numbers(node, 3, "axes") or tuple(range(len(starts)))
    steps = graph.numbers(node, 4) or (1,) * len(starts)
    chosen = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            raise graph.wrong(node, f"has the step {step}")
        chosen[axis % rank] = slice(start, min(end, (1 << 31) - 1), step)
    return graph.net.call(node.name, operator.getitem, graph.node(node.input(0)), tuple(chosen))


def pad(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Pad with a constant, or by reflection or repetition."""
    pads = graph.numbers(node, 1, "pads") or ()
    rank = len(graph.shape(node.input(0)))
    if node.input(3):
        raise graph.wrong(node, "names axes to pad")
    mode = str(node.attributes.get("mode", "constant"))
    value = graph.constant(node.input(2)) if node.input(2) else None
    number = float(node.attributes.get("value", 0.0)) if value is None else float(value.item())
    sides = [pads[axis + half] for axis in reversed(range(rank)) for half in (0, rank)]
    least = 2 if mode == "constant" else 2 * max(1, rank - 2)  # else PyTorch pads just these
    while len(sides) > least and not any(sides[-2:]):
        sides = sides[:-2]
    if mode != "constant" and len(sides) > least:
        raise graph.wrong(node, f"pads its two first axes by '{mode}'")
    names = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}
    if mode not in names or any(one < 0 for one in sides):
        raise graph.wrong(node, f"pads by '{mode}' {pads}")
    options: Any = {"mode": names[mode]} | ({"value": number} if mode == "constant" else {})
    return graph.net.call(node.name, nn.functional.pad, graph.node(node.input(0)), sides, **options)


def reduce(function: Any) -> Any:
    """A rule of a reduction over constant axes."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        rank = len(graph.shape(node.input(0)))
        axes = graph.numbers(node, 1, "axes")
        if not axes and node.attributes.get("noop_with_empty_axes", 0):
            return graph.node(node.input(0))
        chosen = tuple(range(rank)) if not axes else tuple(axis % rank for axis in axes)
        keep = bool(node.attributes.get("keepdims", 1))
        x = graph.node(node.input(0))
        return graph.net.call(node.name, function, x, dim=chosen, keepdim=keep)

    return rule


def depth_to_space(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """DepthToSpace in the order of PyTorch's pixel shuffle (CRD)."""
    size = int(node.attributes["blocksize"])
    if node.attributes.get("mode", "DCR") != "CRD":
        n, c, h, w = graph.shape(node.input(0))
        shape = (n, size, size, c // size**2, h, w)
        x = graph.net.call(node.name, torch.reshape, graph.node(node.input(0)), shape)
        turned = graph.net.call(f"{node.name}/permute", torch.permute, x, (0, 3, 4, 1, 5, 2))
        final = (n, c // size**2, h * size, w * size)
        return graph.net.call(f"{node.name}/reshape", torch.reshape, turned, final)
    return graph.net.module(node.name, nn.PixelShuffle(size), graph.node(node.input(0)))


def space_to_depth(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """SpaceToDepth: channels are blocks' rows, blocks' columns, then the image's channels."""
    size = int(node.attributes["blocksize"])
    n, c, h, w = graph.shape(node.input(0))
    shape = (n, c, h // size, size, w // size, size)
    x = graph.net.call(f"{node.name}/split", torch.reshape, graph.node(node.input(0)), shape)
    turned = graph.net.call(f"{node.name}/permute", torch.permute, x, (0, 3, 5, 1, 2, 4))
    return graph.net.call(node.name, torch.reshape, turned, graph.shape(node.outputs[0]))


def resize(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Resize of the two last axes: nearest by whole factors, or linear between pixel centres."""
    before, after = graph.shape(node.input(0)), graph.shape(node.outputs[0])
    named, first = node.attributes, graph.model.opsets.get("", 13) < 11
    mode = str(named.get("mode", "nearest"))
    places = "asymmetric" if first else "half_pixel"
    places = str(named.get("coordinate_transformation_mode", places))
    rounds = str(named.get("nearest_mode", "floor" if first else "round_prefer_floor"))
    factors = [large / small for small, large in zip(before, after, strict=True)]
    whole = all(factor.is_integer() for factor in factors)
    if places == "half_pixel":
        whole = whole and rounds.startswith("round_prefer_")
    else:  # of halves, which a factor of 2 has, this rounding is a floor, too
        small = rounds == "round_prefer_floor" and max(factors) <= 2
        whole = whole and (rounds == "floor" or small)
    stated = node.input(1 if first else 2)
    scales = graph.constant(stated) if stated else None
    if scales is not None and scales.size:
        axes = named.get("axes", range(len(factors)))
        asked = [factors[int(axis)] for axis in axes]
        if not np.array_equal(scales.astype(np.float32), np.array(asked, np.float32)):
            raise graph.wrong(node, f"has the scales {scales.tolist()} for a change of {asked}")
    if named.get("antialias", 0):
        raise graph.wrong(node, "smooths before it shrinks (antialias)")
    if before[:2] != after[:2] or len(before) != 4:
        raise graph.wrong(node, "resizes other axes than the two last of four")
    x = graph.node(node.input(0))
    if mode == "nearest" and whole and places in ("half_pixel", "asymmetric"):
        options: Any = {"size": after[2:], "mode": "nearest"}
    elif mode == "linear" and places == "pytorch_half_pixel" and 1 in after[2:]:
        raise graph.wrong(node, f"resizes by '{mode}' with '{places}' to one pixel")
    elif mode == "linear" and places in ("half_pixel", "pytorch_half_pixel", "align_corners"):
        corners = places == "align_corners"
        options = {"size": after[2:], "mode": "bilinear", "align_corners": corners}
    else:
        how = f"'{places}' and '{rounds}'" if mode == "nearest" else f"'{places}'"
        raise graph.wrong(node, f"resizes by '{mode}' with {how}")
    return graph.net.call(node.name, nn.functional.interpolate, x, **options)


def gather(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Gather: rows of a table, or constant places of an axis."""
    rank = len(graph.shape(node.input(0)))
    axis = int(node.attributes.get("axis", 0)) % rank
    places = graph.constant(node.input(1))
    table, index = graph.node(node.input(0)), graph.node(node.input(1))
    if places is None:
        if axis != 0 or rank != 2:
            raise graph.wrong(node, "gathers computed places of an axis that is no table's first")
        return graph.net.call(node.name, nn.functional.embedding, index, table)
    extent = graph.shape(node.input(0))[axis]
    if ((places < -extent) | (places >= extent)).any():
        raise graph.wrong(node, f"gathers a place outside of the {extent} that there are")
    chosen = np.asarray(places, np.int64) % extent
    if chosen.ndim == 0:
        return graph.net.call(node.name, torch.select, table, axis, int(chosen))
    if chosen.ndim > 1:
        raise graph.wrong(node, "gathers places of several axes")
    return graph.net.call(node.name, torch.index_select, table, axis, graph.net.constant(chosen))


def gather_elements(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GatherElements."""
    table, index = (graph.node(name) for name in node.inputs)
    return graph.net.call(
        node.name, torch.gather, table, int(node.attributes.get("axis", 0)), index
    )


def gather_nd(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GatherND with constant places of all axes."""
    places = graph.constant(node.input(1))
    shape = graph.shape(node.input(0))
    if places is None or int(node.attributes.get("batch_dims", 0)):
        raise graph.wrong(node, "gathers computed places, or within batches")
    depth = places.shape[-1]
    extents = np.array(shape[:depth])
    if ((places < -extents) | (places >= extents)).any():
        raise graph.wrong(node, f"gathers a place outside of the extents {shape[:depth]}")
    wrapped = places.astype(np.int64) % extents
    flat = np.ravel_multi_index(tuple(np.moveaxis(wrapped, -1, 0)), shape[:depth])
    rows = (int(np.prod(shape[:depth], dtype=np.int64)), *shape[depth:])
    x = graph.net.call(f"{node.name}/rows", torch.reshape, graph.node(node.input(0)), rows)
    index = graph.net.constant(np.ascontiguousarray(flat.reshape(-1)))
    taken = graph.net.call(f"{node.name}/select", torch.index_select, x, 0, index)
    final = (*flat.shape, *shape[depth:])
    return graph.net.call(node.name, torch.reshape, taken, final)


def cast(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Cast."""
    wanted = DTYPES.get(int(node.attributes["to"]))
    if wanted is None:
        raise graph.wrong(node, f"casts to type {node.attributes['to']}")
    return graph.net.method(node.name, "to", graph.node(node.input(0)), wanted)


def expand(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Expand to the result's shape."""
    shape = graph.shape(node.outputs[0])
    return graph.net.call(node.name, torch.broadcast_to, graph.node(node.input(0)), shape)


def same(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Identity, and Dropout outside of training."""
    return graph.node(node.input(0))


RULES: dict[str, Any] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), reshape),
    **dict.fromkeys(("Identity", "Dropout"), same),
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": take,
    "Pad": pad,
    "ReduceMean": reduce(torch.mean),
    "ReduceSum": reduce(torch.sum),
    "ReduceMax": reduce(torch.amax),
    "ReduceMin": reduce(torch.amin),
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Resize": resize,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Cast": cast,
    "Expand": expand,
}
