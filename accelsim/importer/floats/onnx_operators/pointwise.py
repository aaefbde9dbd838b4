"""Activations, operators of two tensors, norms and softmax.

What comes in: a node. What goes out: a module or a function of PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import filled, tensor

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


def clip(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Clip with constant limits: ReLU, ReLU6 or a clamp."""
    limits = []
    for place, name in ((1, "min"), (2, "max")):
        values = graph.constant(node.input(place)) if node.input(place) else None
        if node.input(place) and values is None:
            raise graph.wrong(node, "computes its limits")
        given = node.attributes.get(name) if values is None else values.item()
        limits.append(None if given is None else float(given))
    x = graph.node(node.input(0))
    if limits == [0.0, 6.0]:
        return graph.net.module(node.name, nn.ReLU6(), x)
    if limits == [None, None]:
        return x
    if limits[0] is not None and limits[1] is not None and limits[0] < limits[1]:
        return graph.net.module(node.name, nn.Hardtanh(limits[0], limits[1]), x)
    return graph.net.call(node.name, torch.clamp, x, limits[0], limits[1])


def prelu(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """PRelu with one slope, or one a channel."""
    slopes = graph.constant(node.input(1))
    shape = graph.shape(node.input(0))
    channels = shape[1] if len(shape) > 1 else 1
    fitting = {(1,) * len(shape), (1, channels, *(1,) * (len(shape) - 2))}
    given = () if slopes is None else (*(1,) * (len(shape) - slopes.ndim), *slopes.shape)
    if slopes is None or given not in fitting:
        raise graph.wrong(node, "has slopes that are no constant of one number or one a channel")
    layer = nn.PReLU(slopes.size)
    layer.weight = nn.Parameter(tensor(slopes.astype(np.float32).reshape(-1)))
    return graph.net.module(node.name, layer, graph.node(node.input(0)))


def batch_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """BatchNormalization with constant statistics."""
    found = [graph.constant(name) for name in node.inputs[1:5]]
    if any(one is None for one in found) or node.attributes.get("training_mode", 0):
        raise graph.wrong(node, "computes its statistics")
    scale, bias, mean, variance = (np.asarray(one, np.float32) for one in found)
    rank = len(graph.shape(node.input(0)))
    kind: Any = nn.BatchNorm2d if rank == 4 else nn.BatchNorm1d
    layer = kind(len(mean), eps=float(node.attributes.get("epsilon", 1e-5)))
    layer.running_mean, layer.running_var = tensor(mean), tensor(variance)
    return graph.net.module(node.name, filled(layer, scale, bias), graph.node(node.input(0)))


def layer_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """LayerNormalization over the last axes."""
    shape = graph.shape(node.input(0))
    axis = int(node.attributes.get("axis", -1)) % len(shape)
    scale, bias = graph.constant(node.input(1)), None
    if node.input(2):
        bias = graph.constant(node.input(2))
    if scale is None or (node.input(2) and bias is None) or len(node.outputs) > 1:
        raise graph.wrong(node, "has computed weights or several results")
    layer = nn.LayerNorm(shape[axis:], eps=float(node.attributes.get("epsilon", 1e-5)))
    layer.weight = nn.Parameter(tensor(np.broadcast_to(scale, shape[axis:]).astype(np.float32)))
    values = np.zeros(shape[axis:]) if bias is None else np.broadcast_to(bias, shape[axis:])
    layer.bias = nn.Parameter(tensor(values.astype(np.float32)))
    return graph.net.module(node.name, layer, graph.node(node.input(0)))


def softmax(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Softmax over one axis; before opset 13 it meant all axes from the given one on."""
    rank = len(graph.shape(node.input(0)))
    old = graph.model.opsets.get("", 13) < 13
    axis = int(node.attributes.get("axis", 1 if old else -1)) % rank
    if old and axis != rank - 1:
        raise graph.wrong(node, "has a softmax over several axes")
    return graph.net.module(node.name, nn.Softmax(axis), graph.node(node.input(0)))


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
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
    "Softmax": softmax,
    "Add": binary(operator.add),
    "Sub": binary(operator.sub),
    "Mul": binary(operator.mul),
    "Div": divide,
    "Sum": pairwise(operator.add),
    "Selu": module(lambda _: nn.SELU()),
    "Greater": function(torch.gt),
    "Less": function(torch.lt),
    "Max": pairwise(torch.maximum),
    "Min": pairwise(torch.minimum),
    "Pow": binary(torch.pow),
    "Exp": function(torch.exp),
    "Sqrt": function(torch.sqrt),
    "Reciprocal": function(torch.reciprocal),
    "Erf": function(torch.erf),
    "Abs": function(torch.abs),
    "Neg": function(torch.neg),
    "Log": function(torch.log),
    "And": function(torch.logical_and),
    "Or": function(torch.logical_or),
    "Not": function(torch.logical_not),
    "Equal": function(torch.eq),
    "Where": where,
}
