"""What must hold of a graph of operators: every tensor is made once, before it is read.

What comes in: a model. What goes out: operators with the names of their layers, or a ModelError of
one sentence. It must not know flatbuffers, or what operators compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from accelsim.errors import ModelError
from accelsim.importer.tflite.model import TfliteModel, TfliteOperator
from accelsim.importer.tflite.schema import BUILTIN_OPERATORS

MOST_BYTES = 1 << 30  # of all activations


def named_operators(
    operators: Sequence[TfliteOperator], names: Sequence[str], model: str
) -> tuple[TfliteOperator, ...]:
    """Operators with their layers' names: those of their first outputs.

    Raises ModelError for indices that no tensor has, and for custom operators.
    """
    found = []
    for one in operators:
        if not one.outputs:
            raise ModelError(f"model {model} has a {one.op} without outputs")
        for index in (*one.inputs, *one.outputs):
            lowest = 0 if index in one.outputs else -1
            if not lowest <= index < len(names):
                raise ModelError(
                    f"model {model}: a {one.op} has tensor {index}; there are {len(names)}"
                )
        name = names[one.outputs[0]]
        if one.op not in BUILTIN_OPERATORS:
            raise ModelError(f"model {model}: layer '{name}' is the {one.op}, which is unknown")
        found.append(replace(one, name=name))
    return tuple(found)


def check_graph(model: TfliteModel) -> None:
    """Raises ModelError unless every operator reads what is there, and makes what is not."""
    where = f"model {model.name}"
    for kind, indices in (("input", model.inputs), ("output", model.outputs)):
        if not indices:
            raise ModelError(f"{where} has no {kind}s")
        if not all(0 <= index < len(model.tensors) for index in indices):
            raise ModelError(f"{where} has an {kind} that is none of its tensors")
    if not model.operators:
        raise ModelError(f"{where} has no operators")
    if len(set(model.inputs)) != len(model.inputs):
        raise ModelError(f"{where} has one input twice")
    ready = {index for index, one in enumerate(model.tensors) if one.values is not None}
    for index in model.inputs:
        if index in ready:
            raise ModelError(f"{where}: input '{model.tensors[index].name}' has values")
        ready.add(index)
    for one in model.operators:
        missing = [index for index in one.inputs if index >= 0 and index not in ready]
        if missing:
            name = model.tensors[missing[0]].name
            raise ModelError(
                f"{where}: layer '{one.name}' reads '{name}', which nothing before it makes"
            )
        for index in one.outputs:
            if index in ready:
                raise ModelError(
                    f"{where}: tensor '{model.tensors[index].name}' is made more than once"
                )
            ready.add(index)
    if not all(index in ready for index in model.outputs):
        raise ModelError(f"{where} has an output that no operator makes")
    made = {*model.inputs, *(index for one in model.operators for index in one.outputs)}
    constants = [model.tensors[index].name for index in model.outputs if index not in made]
    if constants:
        raise ModelError(f"{where} has an output that is a constant: '{constants[0]}'")
    total = sum(
        prod(model.tensors[index].shape) * np.dtype(model.tensors[index].dtype).itemsize
        for index in made
    )
    if total > MOST_BYTES:
        raise ModelError(f"{where} has {total:,} bytes of activations, the limit is {MOST_BYTES:,}")
