"""Reductions over axes, the places of extremes, and the largest elements.

What comes in: a node whose axes are constants. What goes out: functions of PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode

Axes = tuple[int, ...]
Step = Callable[["OnnxGraph", str, fx.Node], fx.Node]  # before or after the reduction, and its name


def reduce(function: Any, before: Step | None = None, after: Step | None = None) -> Any:
    """A rule of a reduction over constant axes, with a function of each element on either side."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        rank = len(graph.shape(node.input(0)))
        axes = graph.numbers(node, 1, "axes")
        x, name = graph.node(node.input(0)), node.name
        if before is not None:
            x = before(graph, f"{name}/each", x)
        if not axes and node.attributes.get("noop_with_empty_axes", 0):
            return x if after is None else after(graph, name, x)
        chosen = tuple(range(rank)) if not axes else tuple(axis % rank for axis in axes)
        keep = bool(node.attributes.get("keepdims", 1))
        inner = name if after is None else f"{name}/reduce"
        if chosen:  # PyTorch takes no axes for all of them
            x = graph.net.call(inner, function, x, dim=chosen, keepdim=keep)
        return x if after is None else after(graph, name, x)

    return rule


def _square(graph: OnnxGraph, name: str, x: fx.Node) -> fx.Node:
    return graph.net.call(name, operator.mul, x, x)


def _plain(function: Any) -> Step:
    return lambda graph, name, x: graph.net.call(name, function, x)


def product(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """ReduceProd, axis by axis."""
    rank = len(graph.shape(node.input(0)))
    axes = graph.numbers(node, 1, "axes")
    x = graph.node(node.input(0))
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        return x
    chosen = sorted({axis % rank for axis in axes} if axes else range(rank), reverse=True)
    keep = bool(node.attributes.get("keepdims", 1))
    for axis in chosen:
        name = node.name if axis == chosen[-1] else f"{node.name}/{axis}"
        x = graph.net.call(name, torch.prod, x, axis, keepdim=keep)
    return x


def extreme(largest: bool) -> Any:
    """A rule of the place of the largest or smallest element, the first or the last of equals."""
    kind = torch.argmax if largest else torch.argmin

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        shape, named, net = graph.shape(node.input(0)), node.attributes, graph.net
        axis = int(named.get("axis", 0)) % len(shape)
        keep, x = bool(named.get("keepdims", 1)), graph.node(node.input(0))
        if not named.get("select_last_index", 0):
            return net.call(node.name, kind, x, dim=axis, keepdim=keep)
        turned = net.call(f"{node.name}/turn", torch.flip, x, (axis,))
        place = net.call(f"{node.name}/place", kind, turned, dim=axis, keepdim=keep)
        back = net.call(f"{node.name}/negate", operator.mul, place, -1)
        return net.call(node.name, operator.add, back, shape[axis] - 1)

    return rule


def hardmax(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Hardmax: one at the first largest element of an axis, zero elsewhere."""
    shape, net = graph.shape(node.input(0)), graph.net
    old = graph.model.opsets.get("", 13) < 13
    axis = int(node.attributes.get("axis", 1 if old else -1)) % len(shape)
    if old and axis != len(shape) - 1:
        raise graph.wrong(node, "goes over several axes")
    x = graph.node(node.input(0))
    place = net.call(f"{node.name}/place", torch.argmax, x, dim=axis, keepdim=True)
    line = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    chosen = net.call(f"{node.name}/equal", torch.eq, place, net.constant(line))
    return net.method(node.name, "to", chosen, torch.float32)


def largest(graph: OnnxGraph, node: OnnxNode) -> tuple[fx.Node, fx.Node]:
    """TopK of a constant count, by a sort, which keeps equal elements in order."""
    rank, named, net = len(graph.shape(node.input(0))), node.attributes, graph.net
    count = graph.numbers(node, 1, "k")
    if count is None:
        raise graph.wrong(node, "names no count")
    axis = int(named.get("axis", -1)) % rank
    options = {"dim": axis, "descending": bool(named.get("largest", 1))}
    ordered = net.call(f"{node.name}/sort", torch.sort, graph.node(node.input(0)), **options)
    window = tuple(slice(0, count[0]) if k == axis else slice(None) for k in range(rank))
    parts = []
    for place, title in enumerate(("values", "places")):
        part = net.call(f"{node.name}/{title}", operator.getitem, ordered, place)
        parts.append(net.call(node.name, operator.getitem, part, window))
    return parts[0], parts[1]


RULES: dict[str, Any] = {
    "ReduceMean": reduce(torch.mean),
    "ReduceSum": reduce(torch.sum),
    "ReduceMax": reduce(torch.amax),
    "ReduceMin": reduce(torch.amin),
    "ReduceL1": reduce(torch.sum, before=_plain(torch.abs)),
    "ReduceL2": reduce(torch.sum, before=_square, after=_plain(torch.sqrt)),
    "ReduceSumSquare": reduce(torch.sum, before=_square),
    "ReduceLogSum": reduce(torch.sum, after=_plain(torch.log)),
    "ReduceLogSumExp": reduce(torch.logsumexp),
    "ReduceProd": product,
    "ArgMax": extreme(largest=True),
    "ArgMin": extreme(largest=False),
    "Hardmax": hardmax,
    "TopK": largest,
}
