"""Operators that reorder, join, split and cast.

What comes in: a node whose shapes and axes are constants. What goes out: functions of PyTorch.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.onnx.tensors import dtype_of

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode

DTYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    11: torch.float64,
}


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
    """SpaceToDepth: channels are blocks' rows, blocks' columns, then the image's channels (DCR)."""
    size = int(node.attributes["blocksize"])
    n, c, h, w = graph.shape(node.input(0))
    shape = (n, c, h // size, size, w // size, size)
    order = (
        (0, 3, 5, 1, 2, 4) if node.attributes.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    )
    x = graph.net.call(f"{node.name}/split", torch.reshape, graph.node(node.input(0)), shape)
    turned = graph.net.call(f"{node.name}/permute", torch.permute, x, order)
    return graph.net.call(node.name, torch.reshape, turned, graph.shape(node.outputs[0]))


def cast(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Cast."""
    wanted = DTYPES.get(int(node.attributes["to"]))
    if wanted is None:
        raise graph.wrong(node, f"casts to {dtype_of(int(node.attributes['to']))}")
    return graph.net.method(node.name, "to", graph.node(node.input(0)), wanted)


def cast_like(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """CastLike: to the type of another tensor."""
    wanted = getattr(torch, graph.dtype(node.input(1)), None)
    if wanted not in DTYPES.values():
        raise graph.wrong(node, f"casts to {graph.dtype(node.input(1))}")
    return graph.net.method(node.name, "to", graph.node(node.input(0)), wanted)


def expand(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Expand to the result's shape."""
    shape = graph.shape(node.outputs[0])
    return graph.net.call(node.name, torch.broadcast_to, graph.node(node.input(0)), shape)


def same(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Identity."""
    return graph.node(node.input(0))


def dropout(graph: OnnxGraph, node: OnnxNode) -> Any:
    """Dropout outside of training, which drops nothing."""
    ratio, training = (graph.constant(node.input(k)) if node.input(k) else None for k in (1, 2))
    trains = node.input(2) and (training is None or training.any())
    if trains and (ratio is None or ratio.item() != 0):
        raise graph.wrong(node, "drops elements by chance")
    x = graph.node(node.input(0))
    if len(node.outputs) < 2 or not graph.uses[node.outputs[1]]:
        return x
    return x, graph.net.constant(np.ones(graph.shape(node.input(0)), bool))


RULES: dict[str, Any] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), reshape),
    "Identity": same,
    "Dropout": dropout,
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Cast": cast,
    "CastLike": cast_like,
    "Expand": expand,
}
