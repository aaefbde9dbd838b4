"""QUANTIZE and DEQUANTIZE: changes of a tensor's type or scale without an operator."""

from __future__ import annotations

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph, Value


def same(graph: Graph, operator: TfliteOperator) -> Value:
    """The input's real value; what is done to it follows from the output's type."""
    return graph.real(operator)


CONVERTERS = {"DEQUANTIZE": same, "QUANTIZE": same}
