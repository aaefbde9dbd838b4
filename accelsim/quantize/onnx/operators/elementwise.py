"""Operators that take elements one by one, with and without a quantization of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Stored, constant, dtype_of, number, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of
from accelsim.quantize.onnx.operators import Converter

op = relax.op
_ENDS = {"int8": (-128, 127), "uint8": (0, 255)}
_TYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 11: "float64"}


def unary(function: Callable[..., Any]) -> Converter:
    """A function of one operand."""
    return lambda g, node: g.emit(function(g.real(node.input(0))))


def binary(function: Callable[..., Any]) -> Converter:
    """A function of two operands, broadcast."""
    return lambda g, node: g.emit(function(g.real(node.input(0)), g.real(node.input(1))))


def many(function: Callable[..., Any]) -> Converter:
    """A function of two, applied to any number of operands from the left."""

    def convert(g: Emitter, node: OnnxNode) -> Any:
        value = g.real(node.input(0))
        for name in node.inputs[1:]:
            value = g.emit(function(value, g.real(name)))
        return value

    return convert


def attribute(node: OnnxNode, key: str, default: float) -> float:
    """A real attribute."""
    return float(node.attributes.get(key, default))


def clip(g: Emitter, node: OnnxNode) -> Any:
    """Clip with constant limits; an open end is infinite."""
    limits = [attribute(node, "min", -np.inf), attribute(node, "max", np.inf)]
    for place in (0, 1):
        if node.input(1 + place):
            limits[place] = float(g.numbers(node.input(1 + place), "limits").reshape(-1)[0])
    value = g.value(node.input(0))
    if isinstance(value, Stored):  # of integers: limits narrower than the dtype
        low, high = np.clip(limits, *_ENDS[dtype_of(value.var)])
        return Stored(g.emit(op.clip(value.var, int(low), int(high))), value.levels)
    return g.emit(op.clip(g.operand(value), *limits))


def leaky_relu(g: Emitter, node: OnnxNode) -> Any:
    """LeakyRelu."""
    return g.emit(op.nn.leakyrelu(g.real(node.input(0)), attribute(node, "alpha", 0.01)))


def prelu(g: Emitter, node: OnnxNode) -> Any:
    """PRelu with a slope for each channel, or one."""
    x, slope = g.real(node.input(0)), g.numbers(node.input(1), "slopes")
    channels = shape_of(x)[1]
    if slope.size not in (1, channels):
        raise g.fail(f"has slopes of shape {slope.shape} for {channels} channels")
    values = np.broadcast_to(slope.reshape(-1), (channels,)).astype(np.float32)
    return g.emit(op.nn.prelu(x, constant(values), axis=1))


def hard_sigmoid(g: Emitter, node: OnnxNode) -> Any:
    """max(0, min(1, alpha · x + beta))."""
    x = g.real(node.input(0))
    scaled = g.emit(op.multiply(x, number(attribute(node, "alpha", 0.2))))
    raised = g.emit(op.add(scaled, number(attribute(node, "beta", 0.5))))
    return g.emit(op.clip(raised, 0.0, 1.0))


def hard_swish(g: Emitter, node: OnnxNode) -> Any:
    """x · (relu6(x + 3) / 6), as PyTorch's hard-swish is imported."""
    source = g.value(node.input(0))
    x, again = g.operand(source), g.operand(source)
    raised = g.emit(op.add(x, number(3.0)))
    gate = g.emit(op.clip(raised, 0, 6))
    return g.emit(op.multiply(again, g.emit(op.divide(gate, number(6.0)))))


def swish(g: Emitter, node: OnnxNode) -> Any:
    """x · sigmoid(alpha · x)."""
    if attribute(node, "alpha", 1.0) == 1.0:
        return g.emit(op.nn.silu(g.real(node.input(0))))
    source = g.value(node.input(0))
    scaled = g.emit(op.multiply(g.operand(source), number(attribute(node, "alpha", 1.0))))
    return g.emit(op.multiply(g.operand(source), g.emit(op.sigmoid(scaled))))


def elu(g: Emitter, node: OnnxNode) -> Any:
    """Elu: x above 0, alpha · (exp(x) - 1) below."""
    return _bent(g, node, attribute(node, "alpha", 1.0), 1.0)


def mish(g: Emitter, node: OnnxNode) -> Any:
    """x · tanh(softplus(x))."""
    source = g.value(node.input(0))
    soft = g.emit(op.tanh(g.emit(op.nn.softplus(g.operand(source)))))
    return g.emit(op.multiply(g.operand(source), soft))


def selu(g: Emitter, node: OnnxNode) -> Any:
    """Selu: gamma times an Elu."""
    known = (1.6732632423543772, 1.0507009873554805)
    alpha, gamma = attribute(node, "alpha", known[0]), attribute(node, "gamma", known[1])
    return g.emit(op.multiply(number(gamma), _bent(g, node, alpha, 1.0)))


def celu(g: Emitter, node: OnnxNode) -> Any:
    """Celu: x above 0, alpha · (exp(x / alpha) - 1) below."""
    alpha = attribute(node, "alpha", 1.0)
    return _bent(g, node, alpha, alpha)


def _bent(g: Emitter, node: OnnxNode, factor: float, divisor: float) -> Any:
    """x above 0, factor · (exp(x / divisor) - 1) below."""
    source = g.value(node.input(0))
    above = g.emit(op.nn.relu(g.operand(source)))
    below = g.emit(op.minimum(g.operand(source), number(0.0)))
    if divisor != 1.0:
        below = g.emit(op.divide(below, number(divisor)))
    grown = g.emit(op.subtract(g.emit(op.exp(below)), number(1.0)))
    return g.emit(op.add(above, g.emit(op.multiply(grown, number(factor)))))


def softsign(g: Emitter, node: OnnxNode) -> Any:
    """x / (1 + |x|)."""
    source = g.value(node.input(0))
    raised = g.emit(op.add(g.emit(op.abs(g.operand(source))), number(1.0)))
    return g.emit(op.divide(g.operand(source), raised))


def thresholded(g: Emitter, node: OnnxNode) -> Any:
    """ThresholdedRelu: x above alpha, else 0."""
    source = g.value(node.input(0))
    above = g.emit(op.greater(g.operand(source), number(attribute(node, "alpha", 1.0))))
    return g.emit(op.where(above, g.operand(source), number(0.0)))


def shrink(g: Emitter, node: OnnxNode) -> Any:
    """Shrink: x towards 0 by the bias, and 0 within lambd of it."""
    source = g.value(node.input(0))
    limit, bias = attribute(node, "lambd", 0.5), number(attribute(node, "bias", 0.0))
    over = g.emit(op.greater(g.operand(source), number(limit)))
    under = g.emit(op.less(g.operand(source), number(-limit)))
    low = g.emit(op.add(g.operand(source), bias))
    high = g.emit(op.subtract(g.operand(source), bias))
    inner = g.emit(op.where(over, high, number(0.0)))
    return g.emit(op.where(under, low, inner))


def gelu(g: Emitter, node: OnnxNode) -> Any:
    """Gelu, exact or by tanh."""
    function = op.nn.gelu_tanh if node.attributes.get("approximate") == "tanh" else op.nn.gelu
    return g.emit(function(g.real(node.input(0))))


def reciprocal(g: Emitter, node: OnnxNode) -> Any:
    """1 / x."""
    return g.emit(op.divide(number(1.0), g.real(node.input(0))))


def cast(g: Emitter, node: OnnxNode) -> Any:
    """Cast between the types that TVM has."""
    x, kind = g.real(node.input(0)), _TYPES.get(node.attributes["to"])
    if kind is None:
        raise g.fail(f"casts to element type {node.attributes['to']}, which is not supported")
    return x if dtype_of(x) == kind else g.emit(op.astype(x, kind))


def where(g: Emitter, node: OnnxNode) -> Any:
    """Where."""
    return g.emit(op.where(*(g.real(name) for name in node.inputs)))


def division(g: Emitter, node: OnnxNode) -> Any:
    """Div; integers are divided towards zero, which TVM's division of them does."""
    a, b = g.real(node.input(0)), g.real(node.input(1))
    return g.emit(op.divide(a, b))


def quantized_pair(function: Callable[..., Any]) -> Converter:
    """QLinearAdd and QLinearMul: each operand with its levels, then the output's."""

    def convert(g: Emitter, node: OnnxNode) -> Any:
        a = g.operand(integers(g, *node.inputs[:3]))
        b = g.operand(integers(g, *node.inputs[3:6]))
        return g.quantize(g.emit(function(a, b)), levels_of(g, *node.inputs[6:8]))

    return convert


def quantized(function: Callable[[Any, OnnxNode], Any]) -> Converter:
    """QLinearSigmoid and QLinearLeakyRelu."""

    def convert(g: Emitter, node: OnnxNode) -> Any:
        x = g.operand(integers(g, *node.inputs[:3]))
        zero = node.input(4)
        levels = levels_of(g, node.input(3), zero, None if zero else "uint8")
        return g.quantize(g.emit(function(x, node)), levels)

    return convert


def quantized_where(g: Emitter, node: OnnxNode) -> Any:
    """QLinearWhere: a condition, two tensors with their levels, then the output's."""
    one = g.operand(integers(g, *node.inputs[1:4]))
    other = g.operand(integers(g, *node.inputs[4:7]))
    value = g.emit(op.where(g.real(node.input(0)), one, other))
    return g.quantize(value, levels_of(g, *node.inputs[7:9]))


_UNARY: dict[str, Callable[..., Any]] = {
    "Relu": op.nn.relu,
    "Sigmoid": op.sigmoid,
    "Tanh": op.tanh,
    "Erf": op.erf,
    "Softplus": op.nn.softplus,
    "Exp": op.exp,
    "Log": op.log,
    "Sqrt": op.sqrt,
    "Abs": op.abs,
    "Neg": op.negative,
    "Floor": op.floor,
    "Ceil": op.ceil,
    "Round": op.round,
    "Sign": op.sign,
    "Sin": op.sin,
    "Cos": op.cos,
    "Tan": op.tan,
    "Asin": op.asin,
    "Acos": op.acos,
    "Atan": op.atan,
    "Sinh": op.sinh,
    "Cosh": op.cosh,
    "Asinh": op.asinh,
    "Acosh": op.acosh,
    "Atanh": op.atanh,
    "Not": op.logical_not,
}
_BINARY: dict[str, Callable[..., Any]] = {
    "Add": op.add,
    "Sub": op.subtract,
    "Mul": op.multiply,
    "Pow": op.power,
    "And": op.logical_and,
    "Or": op.logical_or,
    "Xor": op.logical_xor,
    "Equal": op.equal,
    "Greater": op.greater,
    "GreaterOrEqual": op.greater_equal,
    "Less": op.less,
    "LessOrEqual": op.less_equal,
}

CONVERTERS: dict[str, Converter] = {
    **{name: unary(function) for name, function in _UNARY.items()},
    **{name: binary(function) for name, function in _BINARY.items()},
    "Max": many(op.maximum),
    "Min": many(op.minimum),
    "Sum": many(op.add),
    "Div": division,
    "Clip": clip,
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "Swish": swish,
    "Elu": elu,
    "Mish": mish,
    "Selu": selu,
    "Celu": celu,
    "Softsign": softsign,
    "ThresholdedRelu": thresholded,
    "Shrink": shrink,
    "Gelu": gelu,
    "com.microsoft:Gelu": gelu,
    "Reciprocal": reciprocal,
    "Cast": cast,
    "Where": where,
    "com.microsoft:QLinearAdd": quantized_pair(op.add),
    "com.microsoft:QLinearMul": quantized_pair(op.multiply),
    "com.microsoft:QLinearSigmoid": quantized(lambda x, _: op.sigmoid(x)),
    "com.microsoft:QLinearLeakyRelu": quantized(
        lambda x, node: op.nn.leakyrelu(x, attribute(node, "alpha", 0.01))
    ),
    "com.microsoft:QLinearWhere": quantized_where,
}
MOVES = ("Max", "Min")
