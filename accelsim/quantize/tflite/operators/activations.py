"""Functions of single elements, SOFTMAX and its like."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.activation import activated
from accelsim.quantize.tflite.graph import Graph, Value, constant, shape_of

op = relax.op


def function(graph: Graph, operator: TfliteOperator, function: Callable[..., Any]) -> Value:
    """One Relax operator."""
    return graph.emit(function(graph.real(operator)))


def softmax(graph: Graph, operator: TfliteOperator) -> Value:
    """Over the last axis; a beta that is not 1 multiplies the operand."""
    value, beta = graph.real(operator), float(str(operator.options["beta"]))
    if beta != 1.0:
        value = graph.emit(op.multiply(value, constant(beta, "float32")))
    return graph.emit(op.nn.softmax(value, axis=-1))


def leaky_relu(graph: Graph, operator: TfliteOperator) -> Value:
    """Below zero times alpha."""
    alpha = float(str(operator.options["alpha"]))
    return graph.emit(op.nn.leakyrelu(graph.real(operator), alpha=alpha))


def gelu(graph: Graph, operator: TfliteOperator) -> Value:
    """x · Φ(x), or its form with tanh."""
    call = op.nn.gelu_tanh if operator.options["approximate"] else op.nn.gelu
    return graph.emit(call(graph.real(operator)))


def hard_swish(graph: Graph, operator: TfliteOperator) -> Value:
    """x · (relu6(x + 3) / 6)."""
    value = graph.real(operator)
    raised = graph.emit(op.add(value, constant(3.0, "float32")))
    gate = graph.emit(op.clip(raised, 0, 6))
    share = graph.emit(op.divide(gate, constant(6.0, "float32")))
    return graph.emit(op.multiply(value, share))


def elu(graph: Graph, operator: TfliteOperator) -> Value:
    """relu(x) - relu(1 - exp(x))."""
    value = graph.real(operator)
    power = graph.emit(op.exp(value))
    below = graph.emit(op.subtract(constant(1.0, "float32"), power))
    fallen = graph.emit(op.nn.relu(below))
    negative = graph.emit(op.multiply(constant(-1.0, "float32"), fallen))
    return graph.emit(op.add(negative, graph.emit(op.nn.relu(value))))


def prelu(graph: Graph, operator: TfliteOperator) -> Value:
    """Below zero times a constant alpha, one a channel or any that broadcasts."""
    alpha = graph.tensor(operator, 1)
    if alpha.values is None:
        raise graph.wrong(f"has slopes '{alpha.name}' that are computed")
    value = graph.real(operator, 0)
    axis = len(shape_of(value)) - 1
    if alpha.values.size == shape_of(value)[axis] and alpha.quantized:
        stored = constant(alpha.values.reshape(-1))
        slopes = graph.dequantized(stored, alpha.scales, alpha.zero_points)
        return graph.emit(op.nn.prelu(value, slopes, axis=axis))
    slopes = graph.real(operator, 1)
    over = graph.emit(op.nn.relu(value))
    under = graph.emit(op.minimum(value, constant(0.0, "float32")))
    return graph.emit(op.add(over, graph.emit(op.multiply(under, slopes))))


def log_softmax(graph: Graph, operator: TfliteOperator) -> Value:
    """Over the last axis."""
    return graph.emit(op.nn.log_softmax(graph.real(operator), axis=-1))


def unit_length(graph: Graph, operator: TfliteOperator) -> Value:
    """Over the last axis: each element by the root of the sum of their squares."""
    value = graph.real(operator)
    squares = graph.emit(op.multiply(value, value))
    total = graph.emit(op.sum(squares, axis=[-1], keepdims=True))
    length = graph.emit(op.sqrt(total))
    return activated(graph, operator, graph.emit(op.divide(value, length)))


def clipped(graph: Graph, operator: TfliteOperator, low: float, high: float) -> Value:
    """Between two limits."""
    return graph.emit(op.clip(graph.real(operator), low, high))


CONVERTERS = {
    "ABS": partial(function, function=op.abs),
    "CEIL": partial(function, function=op.ceil),
    "COS": partial(function, function=op.cos),
    "ELU": elu,
    "EXP": partial(function, function=op.exp),
    "FLOOR": partial(function, function=op.floor),
    "GELU": gelu,
    "HARD_SWISH": hard_swish,
    "L2_NORMALIZATION": unit_length,
    "LEAKY_RELU": leaky_relu,
    "LOG": partial(function, function=op.log),
    "LOG_SOFTMAX": log_softmax,
    "LOGISTIC": partial(function, function=op.sigmoid),
    "PRELU": prelu,
    "RELU": partial(function, function=op.nn.relu),
    "RELU6": partial(clipped, low=0.0, high=6.0),
    "RELU_0_TO_1": partial(clipped, low=0.0, high=1.0),
    "RELU_N1_TO_1": partial(clipped, low=-1.0, high=1.0),
    "RSQRT": partial(function, function=op.rsqrt),
    "SIN": partial(function, function=op.sin),
    "SOFTMAX": softmax,
    "SQRT": partial(function, function=op.sqrt),
    "SQUARE": partial(function, function=op.square),
    "TANH": partial(function, function=op.tanh),
}
