"""Functions of each element, comparisons, and operators of bits.

What comes in: a node. What goes out: modules and functions of PyTorch.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from accelsim.importer.floats.onnx_operators.pointwise import function, module, pairwise

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode


def swish(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Swish: x times the sigmoid of alpha times x."""
    x, alpha = graph.node(node.input(0)), float(node.attributes.get("alpha", 1.0))
    if alpha == 1.0:
        return graph.net.module(node.name, nn.SiLU(), x)
    scaled = graph.net.call(f"{node.name}/scale", operator.mul, x, alpha)
    gate = graph.net.module(f"{node.name}/sigmoid", nn.Sigmoid(), scaled)
    return graph.net.call(node.name, operator.mul, x, gate)


def selu(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Selu: PyTorch's where the numbers are its own, else gamma times an ELU."""
    known = (1.6732632423543772, 1.0507009873554805)
    given = (
        float(node.attributes.get("alpha", known[0])),
        float(node.attributes.get("gamma", known[1])),
    )
    x = graph.node(node.input(0))
    if all(abs(one - other) < 1e-6 for one, other in zip(given, known, strict=True)):
        return graph.net.module(node.name, nn.SELU(), x)
    bent = graph.net.module(f"{node.name}/elu", nn.ELU(given[0]), x)
    return graph.net.call(node.name, operator.mul, bent, given[1])


def shrink(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Shrink: zero near zero, the rest moved by the bias."""
    x, named, net = graph.node(node.input(0)), node.attributes, graph.net
    limit, bias = float(named.get("lambd", 0.5)), float(named.get("bias", 0.0))
    if graph.dtype(node.input(0)) == "float32":
        if bias == 0.0:
            return net.module(node.name, nn.Hardshrink(limit), x)
        if bias == limit:
            return net.module(node.name, nn.Softshrink(limit), x)
    over, under = (
        net.call(f"{node.name}/over", torch.gt, x, limit),
        net.call(f"{node.name}/under", torch.lt, x, -limit),
    )
    high = net.call(f"{node.name}/high", operator.sub, x, bias)
    low = net.call(f"{node.name}/low", operator.add, x, bias)
    zero = net.call(f"{node.name}/zero", operator.mul, x, 0.0)
    inner = net.call(f"{node.name}/inner", torch.where, over, high, zero)
    return net.call(node.name, torch.where, under, low, inner)


def modulo(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Mod: the rest has the sign of the divisor, or with fmod of the dividend."""
    kind = torch.fmod if node.attributes.get("fmod", 0) else torch.remainder
    return graph.net.call(node.name, kind, *(graph.node(name) for name in node.inputs))


def infinite(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """IsInf of both signs, or of one."""
    named = node.attributes
    both = (named.get("detect_negative", 1), named.get("detect_positive", 1))
    if not any(both):
        raise graph.wrong(node, "looks for neither infinity")
    kind: Any = torch.isinf if all(both) else torch.isposinf if both[1] else torch.isneginf
    return graph.net.call(node.name, kind, graph.node(node.input(0)))


def mean(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Mean of any number of tensors."""
    count = len(node.inputs)
    if count == 1:
        return graph.node(node.input(0))
    result, *others = (graph.node(name) for name in node.inputs)
    for number, other in enumerate(others):
        result = graph.net.call(f"{node.name}/add_{number}", operator.add, result, other)
    return graph.net.call(node.name, operator.mul, result, 1.0 / count)


def accumulate(kind: Any, neutral: int) -> Any:
    """A rule of a running sum or product along a constant axis."""

    def rule(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
        given = graph.numbers(node, 1)
        shape, net = graph.shape(node.input(0)), graph.net
        if given is None or len(given) != 1:
            raise graph.wrong(node, "names no single axis")
        axis, x = given[0] % len(shape), graph.node(node.input(0))
        back = bool(node.attributes.get("reverse", 0))
        if back:
            x = net.call(f"{node.name}/turn", torch.flip, x, (axis,))
        if node.attributes.get("exclusive", 0):  # what comes before each element
            sides = [0, 0] * (len(shape) - 1 - axis) + [1, -1]
            x = net.call(f"{node.name}/shift", nn.functional.pad, x, sides, value=neutral)
        wanted = getattr(torch, graph.dtype(node.input(0)))
        result = net.call(f"{node.name}/run" if back else node.name, kind, x, axis, dtype=wanted)
        return net.call(node.name, torch.flip, result, (axis,)) if back else result

    return rule


RULES: dict[str, Any] = {
    "Swish": swish,
    "Selu": selu,
    "Shrink": shrink,
    "Celu": module(lambda node: nn.CELU(float(node.attributes.get("alpha", 1.0)))),
    "ThresholdedRelu": module(
        lambda node: nn.Threshold(float(node.attributes.get("alpha", 1.0)), 0.0)
    ),
    "Softsign": module(lambda _: nn.Softsign()),
    "Exp": function(torch.exp),
    "Sqrt": function(torch.sqrt),
    "Reciprocal": function(torch.reciprocal),
    "Erf": function(torch.erf),
    "Abs": function(torch.abs),
    "Neg": function(torch.neg),
    "Log": function(torch.log),
    "Sign": function(torch.sign),
    "Floor": function(torch.floor),
    "Ceil": function(torch.ceil),
    "Round": function(torch.round),
    "Sin": function(torch.sin),
    "Cos": function(torch.cos),
    "Tan": function(torch.tan),
    "Asin": function(torch.asin),
    "Acos": function(torch.acos),
    "Atan": function(torch.atan),
    "Sinh": function(torch.sinh),
    "Cosh": function(torch.cosh),
    "Asinh": function(torch.asinh),
    "Acosh": function(torch.acosh),
    "Atanh": function(torch.atanh),
    "IsNaN": function(torch.isnan),
    "IsInf": infinite,
    "Greater": function(torch.gt),
    "Less": function(torch.lt),
    "GreaterOrEqual": function(torch.ge),
    "LessOrEqual": function(torch.le),
    "Equal": function(torch.eq),
    "And": function(torch.logical_and),
    "Or": function(torch.logical_or),
    "Xor": function(torch.logical_xor),
    "Not": function(torch.logical_not),
    "BitwiseAnd": function(torch.bitwise_and),
    "BitwiseOr": function(torch.bitwise_or),
    "BitwiseXor": function(torch.bitwise_xor),
    "BitwiseNot": function(torch.bitwise_not),
    "Mod": modulo,
    "Mean": mean,
    "Max": pairwise(torch.maximum),
    "Min": pairwise(torch.minimum),
    "Sum": pairwise(operator.add),
    "CumSum": accumulate(torch.cumsum, 0),
    "CumProd": accumulate(torch.cumprod, 1),
}
