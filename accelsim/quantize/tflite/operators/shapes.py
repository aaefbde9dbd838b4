"""RESHAPE and its like: elements in the same order, in other axes."""

from __future__ import annotations

from math import prod

from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph, Value


def renamed(graph: Graph, operator: TfliteOperator) -> Value:
    """The output's shape, which the file states, says it all."""
    source, target = graph.tensor(operator, 0), graph.output(operator)
    if prod(source.shape) != prod(target.shape):
        raise graph.wrong(f"makes {target.shape} of {source.shape}")
    return graph.emit(relax.op.reshape(graph.real(operator), target.shape))


CONVERTERS = {"RESHAPE": renamed, "SQUEEZE": renamed, "EXPAND_DIMS": renamed}
