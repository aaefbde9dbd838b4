"""The bytes of a `.tflite` file → `TfliteModel`.

What comes in: bytes that may be damaged or hostile. What goes out: a model whose every index, shape
and scale was checked, or a ModelError of one sentence. It must not know what operators compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ModelError
from accelsim.importer.tflite.flatbuffer import Flatbuffer, Table
from accelsim.importer.tflite.graph import check_graph, named_operators
from accelsim.importer.tflite.model import Option, TfliteModel, TfliteOperator, TfliteTensor
from accelsim.importer.tflite.schema import (
    BUILTIN_OPERATORS,
    CUSTOM,
    OPTIONS,
    READABLE,
    TENSOR_TYPES,
)

MOST_TENSORS = 100_000
MOST_BYTES = 1 << 28  # of one tensor
LONGEST_NAME = 1024
MOST_AXES = 8
_IDENTIFIER, _VERSION = b"TFL3", 3


def read_model(content: bytes, name: str) -> TfliteModel:
    """Read a model. Raises ModelError."""
    file = Flatbuffer(content, name)
    root = file.root(_IDENTIFIER)
    version = root.number(0, "I")
    if version != _VERSION:
        raise ModelError(f"model file {name} has schema version {version}; only 3 is supported")
    graphs = list(root.tables(2, MOST_TENSORS, "graphs"))
    if len(graphs) != 1:
        raise ModelError(
            f"model file {name} has {len(graphs)} graphs; only models of one graph, without "
            "control flow, are supported"
        )
    graph = graphs[0]
    codes = [_code(one, name) for one in root.tables(1, MOST_TENSORS, "operator codes")]
    buffers = list(root.tables(4, MOST_TENSORS, "buffers"))
    tables = list(graph.tables(0, MOST_TENSORS, "tensors"))
    names = _names(tables)
    read = [_operator(one, codes, name) for one in graph.tables(3, MOST_TENSORS, "operators")]
    operators = named_operators(read, names, name)
    users = _users(operators)
    tensors = tuple(
        _tensor(one, names[index], buffers, users.get(index, ""), file)
        for index, one in enumerate(tables)
    )
    model = TfliteModel(
        name=name,
        tensors=tensors,
        operators=operators,
        inputs=_indices(graph, 1),
        outputs=_indices(graph, 2),
        data=content,
        signature=_signature(root, tensors),
    )
    check_graph(model)
    for index in model.inputs:
        _refuse_open_axes(tables[index], f"model {name}: input '{names[index]}'")
    return model


def _refuse_open_axes(table: Table, where: str) -> None:
    """Raises ModelError where the shape signature leaves an axis other than the batch open."""
    for axis, extent in enumerate(table.array(7, "int32")):
        if axis and extent < 0:
            raise ModelError(
                f"{where} leaves axis {axis} open in its shape signature; convert the model with "
                "fixed shapes"
            )


def _names(tables: Sequence[Table]) -> list[str]:
    """The tensors' names, unique; one without is called by its number."""
    found: dict[str, int] = {}
    for index, table in enumerate(tables):
        text = table.text(3)[:LONGEST_NAME] or f"tensor_{index}"
        name, count = text, 0
        while name in found:
            count += 1
            name = f"{text}_{index}" if count == 1 else f"{text}_{index}_{count}"
        found[name] = index
    return list(found)


def _code(table: Table, name: str) -> str:
    """What operators of this code are called. Raises ModelError for an unknown one."""
    number = int(max(table.number(3, "i"), table.number(0, "b")))
    if number == CUSTOM:
        return f"custom operator {table.text(1)[:LONGEST_NAME]!r}"
    if not 0 <= number < len(BUILTIN_OPERATORS):
        raise ModelError(f"model file {name} has an operator of number {number}, which is unknown")
    return BUILTIN_OPERATORS[number]


def _operator(table: Table, codes: Sequence[str], name: str) -> TfliteOperator:
    index = table.number(0, "I")
    if index >= len(codes):
        raise ModelError(
            f"model file {name} has an operator of code {index}; it has {len(codes)} codes"
        )
    return TfliteOperator(
        codes[index], "", _indices(table, 1), _indices(table, 2), _options(table, codes[index])
    )


def _options(table: Table, op: str) -> Mapping[str, Option]:
    """Options by name; defaults where the operator has none. Raises ModelError for another's."""
    known = OPTIONS.get(op)
    if known is None:
        return {}
    kind, options = table.number(3, "B"), table.table(4)
    if kind not in (0, known.kind):
        raise table.buffer.damaged(f"a {op} has the options of another operator")
    if kind == 0 or options is None:
        return {one.name: () if one.form == "*i" else one.default for one in known.fields}
    found: dict[str, Option] = {}
    for one in known.fields:
        if one.form == "*i":
            found[one.name] = tuple(int(value) for value in options.array(one.slot, "int32"))
        else:
            found[one.name] = options.number(one.slot, one.form, one.default)
    return found


def _indices(table: Table, slot: int) -> tuple[int, ...]:
    return tuple(int(index) for index in table.array(slot, "int32"))


def _users(operators: Sequence[TfliteOperator]) -> dict[int, str]:
    """Tensor → the layer that makes it, else the first that reads it, for messages."""
    found: dict[int, str] = {}
    for one in reversed(operators):
        found.update(dict.fromkeys(one.inputs, one.name))
    for one in operators:
        found.update(dict.fromkeys(one.outputs, one.name))
    return found


def _tensor(
    table: Table, name: str, buffers: Sequence[Table], layer: str, file: Flatbuffer
) -> TfliteTensor:
    """One tensor. Raises ModelError naming it and its layer."""
    where = f"model {file.name}: tensor '{name}'" + (f" of layer '{layer}'" if layer else "")
    number = table.number(1, "b")
    if not 0 <= number < len(TENSOR_TYPES):
        raise ModelError(f"{where} has the unknown type {number}")
    dtype = TENSOR_TYPES[number]
    if dtype not in READABLE:
        raise ModelError(f"{where} is {dtype}; {', '.join(READABLE)} are supported")
    if table.number(5, "?", False):
        raise ModelError(f"{where} is a variable, which keeps its value between runs")
    if table.has(6):
        raise ModelError(f"{where} is sparse; convert the model with dense weights")
    shape = _shape(table, dtype, where)
    values = _values(table, buffers, dtype, shape, where)
    scales, zero_points, axis = _quantization(table, dtype, shape, values is not None, where)
    return TfliteTensor(name, dtype, shape, scales, zero_points, axis, values)


def _shape(table: Table, dtype: str, where: str) -> tuple[int, ...]:
    shape = tuple(int(extent) for extent in table.array(0, "int32"))
    if len(shape) > MOST_AXES:
        raise ModelError(f"{where} has {len(shape)} axes, the limit is {MOST_AXES}")
    if any(extent < 0 for extent in shape):
        raise ModelError(
            f"{where} has the dynamic shape {shape}; convert the model with fixed shapes"
        )
    if 0 in shape:
        raise ModelError(f"{where} has the shape {shape}, which has no elements")
    size = prod(shape) * np.dtype(dtype).itemsize
    if size > MOST_BYTES:
        raise ModelError(f"{where} announces {size:,} bytes, the limit is {MOST_BYTES:,}")
    return shape


def _values(
    table: Table, buffers: Sequence[Table], dtype: str, shape: tuple[int, ...], where: str
) -> NDArray[Any] | None:
    """A constant's values over the file's bytes, None of an activation."""
    number = table.number(2, "I")
    if number >= len(buffers):
        raise ModelError(f"{where} has buffer {number}; the file has {len(buffers)}")
    buffer = buffers[number]
    if number == 0:
        return None
    if buffer.number(2, "Q"):
        raise ModelError(f"{where} has its values behind the model, which is not supported")
    stored = buffer.array(0, "uint8")
    if not stored.size:
        return None
    kind = np.dtype(dtype).newbyteorder("<")
    if stored.size != prod(shape) * kind.itemsize:
        raise ModelError(
            f"{where} has {stored.size} bytes of values for the shape {shape} of {dtype}"
        )
    values: NDArray[Any] = stored.view(kind).reshape(shape)
    return values


def _quantization(
    table: Table, dtype: str, shape: tuple[int, ...], constant: bool, where: str
) -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
    """Scales, zero points and the axis that they lie along."""
    none = np.zeros(0, np.float32), np.zeros(0, np.int64), 0
    stored = table.table(4)
    if stored is None or dtype in ("float32", "bool"):
        return none
    if stored.number(4, "B"):
        raise ModelError(f"{where} has a quantization of its own kind, which is not supported")
    scales, zeros = stored.array(2, "float32"), stored.array(3, "int64")
    if not scales.size:
        return none
    axis = stored.number(6, "i")
    if zeros.size == 0:
        zeros = np.zeros(scales.size, np.int64)
    elif zeros.size == 1 and scales.size > 1:
        zeros = np.repeat(zeros, scales.size)
    if zeros.size != scales.size:
        raise ModelError(f"{where} has {scales.size} scales and {zeros.size} zero points")
    if scales.size > 1:
        if not constant:
            raise ModelError(f"{where} is an activation with {scales.size} scales; it needs one")
        if not 0 <= axis < len(shape) or shape[axis] != scales.size:
            raise ModelError(
                f"{where} has {scales.size} scales along axis {axis} of the shape {shape}"
            )
    usable = np.isfinite(scales) & (scales >= np.finfo(np.float32).tiny)
    if not usable.all():
        worst = float(scales[~usable][0])
        raise ModelError(f"{where} has the scale {worst:g}; scales are positive and finite")
    limits = np.iinfo(dtype)
    if ((zeros < limits.min) | (zeros > limits.max)).any():
        raise ModelError(f"{where} has a zero point outside {dtype}")
    return scales, zeros, axis


def _signature(root: Table, tensors: Sequence[TfliteTensor]) -> dict[str, str]:
    """Names of inputs and outputs in the first signature, by the tensors' own."""
    found: dict[str, str] = {}
    for signature in list(root.tables(7, MOST_TENSORS, "signatures"))[:1]:
        for slot in (0, 1):
            for entry in signature.tables(slot, MOST_TENSORS, "names"):
                index = entry.number(1, "I")
                if index < len(tensors):
                    found[tensors[index].name] = entry.text(0)[:LONGEST_NAME]
    return found
