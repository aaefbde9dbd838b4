"""ADD, SUB, MUL, MINIMUM, MAXIMUM, and operators of two operands that the host runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.activation import activated
from accelsim.quantize.tflite.graph import Graph, Value

op = relax.op


def binary(graph: Graph, operator: TfliteOperator, function: Callable[..., Any]) -> Value:
    """Two operands, broadcast as NumPy does."""
    call = function(graph.real(operator, 0), graph.real(operator, 1))
    return activated(graph, operator, graph.emit(call))


def squared_difference(graph: Graph, operator: TfliteOperator) -> Value:
    """The square of a difference."""
    difference = graph.emit(op.subtract(graph.real(operator, 0), graph.real(operator, 1)))
    return graph.emit(op.multiply(difference, difference))


CONVERTERS = {
    "ADD": partial(binary, function=op.add),
    "SUB": partial(binary, function=op.subtract),
    "MUL": partial(binary, function=op.multiply),
    "DIV": partial(binary, function=op.divide),
    "POW": partial(binary, function=op.power),
    "MINIMUM": partial(binary, function=op.minimum),
    "MAXIMUM": partial(binary, function=op.maximum),
    "SQUARED_DIFFERENCE": squared_difference,
}
