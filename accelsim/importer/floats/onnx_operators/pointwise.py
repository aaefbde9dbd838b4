"""Activations, and arithmetic of two tensors.

What comes in: a node. What goes out: a module or a function of PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import tensor

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode

MINUS_INFINITY = -1e30
"""What is lower stands for minus infinity, which no scale of 8 bits can hold beside scores."""
MASKED = -60.0
"""exp(-60) is 9e-27: beside scores within 40 of each other, float32 sums do not see it."""


def module(make: Callable[[OnnxNode], nn.Module]) -> Any:
    """A rule that calls a module without weights."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        return graph.net.module(node.name, make(node), graph.node(node.input(0)))

    return rule


def function(call: Callable[..., Any]) -> Any:
    """A rule that calls a function of all inputs."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        return graph.net.call(node.name, call, *(graph.node(name) for name in node.inputs))

    return rule


def binary(call: Callable[..., Any]) -> Any:
    """A rule of two tensors; a constant of one element becomes a number."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        if len(node.inputs) != 2:
            raise graph.wrong(node, f"has {len(node.inputs)} inputs and not two")
        operands: list[Any] = []
        for name in node.inputs:
            values = graph.constant(name)
            single = values is not None and values.size == 1 and values.dtype.kind == "f"
            rank = 0 if values is None else values.ndim
            others = [len(graph.shape(one)) for one in node.inputs if one != name]
            plain = single and rank <= max(others, default=0)
            operands.append(float(values.item()) if plain and values is not None else None)
        if all(one is not None for one in operands):
            operands[0] = None
        pairs = zip(operands, node.inputs, strict=True)
        given = [graph.node(name) if one is None else one for one, name in pairs]
        return graph.net.call(node.name, call, *given)

    return rule


def pairwise(call: Callable[..., Any]) -> Any:
    """A rule of any number of tensors, taken two by two."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        result, *others = (graph.node(name) for name in node.inputs)
        for other in others:
            result = graph.net.call(node.name, call, result, other)
        return result

    return rule


def divide(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Div, whose quotients of integers lose their fraction."""
    known = graph.model.values.get(node.outputs[0])
    if known is not None and np.dtype(known.dtype).kind in "iu":
        operands = [graph.node(name) for name in node.inputs]
        return graph.net.call(node.name, torch.div, *operands, rounding_mode="trunc")
    divided: fx.Node = binary(operator.truediv)(graph, node)
    return divided


def power(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Pow, whose result has the type of the base."""
    raised: fx.Node = binary(torch.pow)(graph, node)
    base, exponent = (graph.dtype(name) for name in node.inputs)
    if base == exponent or "float" in base:
        return raised
    return graph.net.method(f"{node.name}/cast", "to", raised, getattr(torch, base))


def clip(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Clip: ReLU, ReLU6 or a clamp where limits are constants, else a minimum of a maximum."""
    x, limits, computed = graph.node(node.input(0)), [], False
    for place, name in ((1, "min"), (2, "max")):
        values = graph.constant(node.input(place)) if node.input(place) else None
        computed = computed or bool(node.input(place) and values is None)
        limits.append(node.attributes.get(name) if values is None else values.item())
    if computed:
        for place, kind in ((1, torch.maximum), (2, torch.minimum)):
            if node.input(place):
                x = graph.net.call(node.name, kind, x, graph.node(node.input(place)))
        return x
    real = graph.dtype(node.input(0)) == "float32"
    low, high = (None if one is None else float(one) if real else int(one) for one in limits)
    if real and (low, high) == (0.0, 6.0):
        return graph.net.module(node.name, nn.ReLU6(), x)
    if low is None and high is None:
        return x
    if real and low is not None and high is not None and low < high:
        return graph.net.module(node.name, nn.Hardtanh(low, high), x)
    return graph.net.call(node.name, torch.clamp, x, low, high)


def prelu(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """PRelu: PyTorch's with one slope or one a channel, else a maximum and a scaled minimum."""
    slopes = graph.constant(node.input(1))
    shape, x, net = graph.shape(node.input(0)), graph.node(node.input(0)), graph.net
    channels = shape[1] if len(shape) > 1 else 1
    fitting = {(1,) * len(shape), (1, channels, *(1,) * (len(shape) - 2))}
    given = () if slopes is None else (*(1,) * (len(shape) - slopes.ndim), *slopes.shape)
    if slopes is not None and given in fitting:
        layer = nn.PReLU(slopes.size)
        layer.weight = nn.Parameter(tensor(slopes.astype(np.float32).reshape(-1)))
        return net.module(node.name, layer, x)
    over = net.module(f"{node.name}/over", nn.ReLU(), x)
    under = net.call(f"{node.name}/under", torch.clamp, x, None, 0.0)
    scaled = net.call(f"{node.name}/scale", operator.mul, under, graph.node(node.input(1)))
    return net.call(node.name, operator.add, over, scaled)


def hard_sigmoid(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """HardSigmoid: PyTorch's where the numbers are its own."""
    alpha = float(node.attributes.get("alpha", 0.2))
    beta = float(node.attributes.get("beta", 0.5))
    x = graph.node(node.input(0))
    if np.float32(alpha) == np.float32(1 / 6) and beta == 0.5:
        return graph.net.module(node.name, nn.Hardsigmoid(), x)
    scaled = graph.net.call(f"{node.name}/multiply", operator.mul, x, alpha)
    moved = graph.net.call(f"{node.name}/add", operator.add, scaled, beta)
    return graph.net.module(node.name, nn.Hardtanh(0.0, 1.0), moved)


def gelu(node: OnnxNode) -> nn.Module:
    """Gelu, exact or by tanh."""
    return nn.GELU(approximate=str(node.attributes.get("approximate", "none")))


def where(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Where; a number that stands for minus infinity below a softmax becomes `MASKED`."""
    chosen = []
    for name in node.inputs:
        values = graph.constant(name)
        lowest = values is not None and values.size == 1 and values.dtype.kind == "f"
        if lowest and values is not None and values.item() < MINUS_INFINITY:
            if _masks_softmax(graph, node.outputs[0]):
                values = np.full(values.shape, MASKED, values.dtype)
            chosen.append(graph.net.constant(values))
        else:
            chosen.append(graph.node(name))
    return graph.net.call(node.name, torch.where, *chosen)


def _masks_softmax(graph: OnnxGraph, name: str) -> bool:
    """Whether a tensor is only added to what softmaxes take."""
    sums = [one for one in graph.model.nodes if name in one.inputs]
    behind = [one for made in sums for one in graph.model.nodes if made.outputs[0] in one.inputs]
    added = bool(sums) and all(one.operator == "Add" for one in sums)
    return added and bool(behind) and all(one.operator == "Softmax" for one in behind)


def _alpha(default: float) -> Callable[[OnnxNode], float]:
    return lambda node: float(node.attributes.get("alpha", default))


RULES: dict[str, Any] = {
    "Relu": module(lambda _: nn.ReLU()),
    "LeakyRelu": module(lambda node: nn.LeakyReLU(_alpha(0.01)(node))),
    "Elu": module(lambda node: nn.ELU(_alpha(1.0)(node))),
    "Sigmoid": module(lambda _: nn.Sigmoid()),
    "Tanh": module(lambda _: nn.Tanh()),
    "HardSwish": module(lambda _: nn.Hardswish()),
    "Mish": module(lambda _: nn.Mish()),
    "Softplus": module(lambda _: nn.Softplus()),
    "Gelu": module(gelu),
    "HardSigmoid": hard_sigmoid,
    "Clip": clip,
    "PRelu": prelu,
    "Add": binary(operator.add),
    "Sub": binary(operator.sub),
    "Mul": binary(operator.mul),
    "Div": divide,
    "Pow": power,
    "Where": where,
}
