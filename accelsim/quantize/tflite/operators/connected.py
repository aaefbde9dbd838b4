"""FULLY_CONNECTED and BATCH_MATMUL."""

from __future__ import annotations

from math import prod
from typing import Any

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.activation import activated
from accelsim.quantize.tflite.graph import Graph, Value, shape_of
from accelsim.quantize.tflite.weights import biased, weight_of

op = relax.op


def fully_connected(graph: Graph, operator: TfliteOperator) -> Value:
    """Weights (out, in); an input of more axes is flattened to rows of `in` elements."""
    if operator.options["format"]:
        raise graph.wrong("has shuffled weights, which are not supported")
    source, target = graph.tensor(operator, 0), graph.output(operator)
    weight = weight_of(graph, operator, 1, 2, 0)
    outputs, inputs = weight.values.shape
    if prod(source.shape) % inputs:
        raise graph.wrong(f"has {inputs} weights an output for an input of {source.shape}")
    value = graph.real(operator)
    rows = (prod(source.shape) // inputs, inputs)
    kept = source.shape[-1:] == (inputs,) and target.shape == (*source.shape[:-1], outputs)
    if not kept and source.shape != rows:
        value = graph.emit(op.reshape(value, rows))
    turned = graph.emit(op.permute_dims(weight.real(graph, weight.values, 0)))
    product = graph.emit(op.matmul(value, turned))
    result = activated(graph, operator, biased(graph, operator, 2, product, source, weight))
    if shape_of(result) != target.shape and prod(target.shape) == rows[0] * outputs:
        result = graph.emit(op.reshape(result, target.shape))
    return result


def batch_matmul(graph: Graph, operator: TfliteOperator) -> Value:
    """Two operands, each perhaps with its last two axes exchanged."""
    operands = []
    for place, option in enumerate(("adj_x", "adj_y")):
        value = graph.real(operator, place)
        rank = len(shape_of(value))
        if rank < 2:
            raise graph.wrong(f"multiplies an operand of {rank} axes")
        if operator.options[option]:
            order: Any = [*range(rank - 2), rank - 1, rank - 2]
            value = graph.emit(op.permute_dims(value, order))
        operands.append(value)
    return graph.emit(op.matmul(*operands))


CONVERTERS = {"FULLY_CONNECTED": fully_connected, "BATCH_MATMUL": batch_matmul}
