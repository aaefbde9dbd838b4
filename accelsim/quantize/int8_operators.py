"""The float operators that each of PyTorch's quantized kernels stands for.

What comes in: a call of a quantized module or function, and ways to write nodes. What goes out: the
node with the float result, or None for a kernel that is not known. It must not know scales: they
are around what is written here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from accelsim.quantize.int8_modules import Weights
from accelsim.quantize.names import operator_name

_CONVOLUTIONS = {
    "1d": functional.conv1d,
    "2d": functional.conv2d,
    "transpose1d": functional.conv_transpose1d,
    "transpose2d": functional.conv_transpose2d,
}


@dataclass(frozen=True, slots=True)
class Emit:
    """Ways to write the new graph."""

    graph: fx.Graph
    operand: Callable[[Any], Any]  # node of the int8 graph → its float value
    weight: Callable[[Any], fx.Node]  # packed weight → its float value
    constant: Callable[[Any], fx.Node]
    module: Callable[[fx.Node], fx.Node]  # call the int8 graph's own module in float

    def call(self, function: Any, *arguments: Any, **keywords: Any) -> fx.Node:
        """Call a function on nodes of the new graph."""
        return self.graph.call_function(function, arguments, keywords)


def float_module(
    emit: Emit, node: fx.Node, layer: nn.Module, weights: Weights | None
) -> fx.Node | None:
    """The float form of a call of a module."""
    kind, place = type(layer).__name__, type(layer).__module__
    if ".quantized" not in place:
        return emit.module(node)
    data: Any = emit.operand(node.args[0])
    if weights is not None:
        return _weighted_module(emit, data, layer, weights, kind)
    own: Any = layer
    found: dict[str, Callable[[], fx.Node]] = {
        "ReLU6": lambda: emit.call(functional.relu6, data),
        "Hardswish": lambda: emit.call(functional.hardswish, data),
        "ELU": lambda: emit.call(functional.elu, data, own.alpha),
        "LeakyReLU": lambda: emit.call(functional.leaky_relu, data, own.negative_slope),
        "Sigmoid": lambda: emit.call(torch.sigmoid, data),
        "Softmax": lambda: emit.call(torch.softmax, data, own.dim),
        "PReLU": lambda: emit.call(functional.prelu, data, emit.constant(own.weight.dequantize())),
        "BatchNorm2d": lambda: _batch_norm(emit, data, own),
        "BNReLU2d": lambda: emit.call(functional.relu, _batch_norm(emit, data, own)),
        "LayerNorm": lambda: emit.call(
            functional.layer_norm,
            data,
            list(own.normalized_shape),
            emit.constant(own.weight),
            emit.constant(own.bias),
            own.eps,
        ),
    }
    return found[kind]() if kind in found else None


def _weighted_module(
    emit: Emit, data: fx.Node, layer: Any, weights: Weights, kind: str
) -> fx.Node | None:
    weight = emit.weight(weights.weight)
    bias = None if weights.bias is None else emit.constant(weights.bias)
    activation = {"ReLU": functional.relu, "Tanh": torch.tanh}.get(kind.removeprefix("Linear"))
    if kind.startswith("Linear"):
        made = emit.call(functional.linear, data, weight, bias)
        if kind == "LinearLeakyReLU":
            return emit.call(functional.leaky_relu, made, layer.negative_slope)
        if activation is None and kind != "Linear":
            return None
        return made if activation is None else emit.call(activation, made)
    if getattr(layer, "padding_mode", "zeros") != "zeros":
        return None
    dims = kind.removeprefix("ConvReLU").removeprefix("Conv").lower()
    if dims not in _CONVOLUTIONS:
        return None
    settings: list[Any] = [list(layer.stride), list(layer.padding)]
    if dims.startswith("transpose"):
        settings += [list(layer.output_padding), layer.groups, list(layer.dilation)]
    else:
        settings += [list(layer.dilation), layer.groups]
    made = emit.call(_CONVOLUTIONS[dims], data, weight, bias, *settings)
    return emit.call(functional.relu, made) if kind.startswith("ConvReLU") else made


def _batch_norm(emit: Emit, data: fx.Node, layer: Any) -> fx.Node:
    stored = (layer.running_mean, layer.running_var, layer.weight, layer.bias)
    return emit.call(
        functional.batch_norm, data, *(emit.constant(one) for one in stored), False, 0.0, layer.eps
    )


def float_function(
    emit: Emit, node: fx.Node, weights: Weights | None, packed: Any
) -> fx.Node | None:
    """The float form of a call of a function or method."""
    target: Any = node.target
    named = getattr(target, "namespace", "") or getattr(target, "_qualified_op_name", "")
    if node.op == "call_method" or not str(named).startswith("quantized"):
        return emit.graph.create_node(
            node.op,
            target,
            fx.map_arg(node.args, emit.operand),
            fx.map_arg(node.kwargs, emit.operand),
        )
    kind = operator_name(target)
    plain = kind.removesuffix("_relu")
    made: fx.Node | None
    if weights is not None:
        made = _weighted_function(emit, node, weights, packed, plain)
    else:
        made = _simple_function(emit, node, plain)
    if made is None or plain == kind:
        return made
    return emit.call(functional.relu, made)


def _weighted_function(
    emit: Emit, node: fx.Node, weights: Weights, packed: Any, kind: str
) -> fx.Node:
    data = emit.operand(node.args[0])
    weight = emit.weight(weights.weight)
    bias = None if weights.bias is None else emit.constant(weights.bias)
    if kind == "linear":
        return emit.call(functional.linear, data, weight, bias)
    settings = [list(packed.stride()), list(packed.padding())]
    if "transpose" in kind:
        settings += [list(packed.output_padding()), packed.groups(), list(packed.dilation())]
    else:
        settings += [list(packed.dilation()), packed.groups()]
    run = _CONVOLUTIONS[kind.removeprefix("conv").removeprefix("_")]
    return emit.call(run, data, weight, bias, *settings)


def _simple_function(emit: Emit, node: fx.Node, kind: str) -> fx.Node | None:
    values: list[Any] = [fx.map_arg(argument, emit.operand) for argument in node.args]
    pairs: dict[str, Callable[..., Any]] = {
        "add": operator.add,
        "mul": operator.mul,
        "add_scalar": operator.add,
        "mul_scalar": operator.mul,
        "matmul": torch.matmul,
    }
    if kind in pairs:
        return emit.call(pairs[kind], *values[:2])
    found: dict[str, Callable[[], fx.Node]] = {
        "cat": lambda: emit.call(torch.cat, values[0], node.kwargs.get("dim", 1)),
        "hardswish": lambda: emit.call(functional.hardswish, values[0]),
        "sigmoid": lambda: emit.call(torch.sigmoid, values[0]),
        "relu6": lambda: emit.call(functional.relu6, values[0]),
        "leaky_relu": lambda: emit.call(functional.leaky_relu, values[0], values[1]),
        "softmax": lambda: emit.call(torch.softmax, values[0], values[1]),
        "elu": lambda: emit.call(functional.elu, values[0], node.kwargs.get("alpha", 1.0)),
    }
    return found[kind]() if kind in found else None
