"""TensorFlow Lite's operators in Relax: one module of this folder for each family.

A module defines `CONVERTERS`: name of an operator → a function of the `Graph` and the operator
that emits Relax calls and returns the float result, or a list of as many as the operator has
outputs. What it reads are `graph.real(operator, place)`, an input as floats, and `graph.integers`,
a constant one. Quantization of the result, names and the check of its shape are the graph's.
Modules are found in the folder when an operator is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from accelsim.discovery import modules_in
from accelsim.errors import ModelError
from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.graph import Graph, Value

Converter = Callable[[Graph, TfliteOperator], Value | Sequence[Value]]


def converter_of(operator: TfliteOperator, model: str) -> Converter:
    """The converter of an operator. Raises ModelError, naming the layer, where there is none."""
    found = converters().get(operator.op)
    if found is None:
        raise ModelError(
            f"model {model}: layer '{operator.name}' is a {operator.op}, which is not supported"
        )
    return found


@cache
def converters() -> dict[str, Converter]:
    """Every converter by the operator's name."""
    found: dict[str, Converter] = {}
    for module in modules_in(__name__):
        found |= module.CONVERTERS
    return found
