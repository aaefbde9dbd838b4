"""Any frozen dataclass as arrays, int32 and float32 numbers, and back.

What comes in: an instance of a dataclass whose fields are int, bool, str, np.float32, NumPy arrays,
other such dataclasses, tuples and unions of these with None. What goes out: its arrays, its whole
numbers and its real numbers, each in the order of the fields; and the inverse, given the class. It
must not know any operator.

`read` takes what it finds from any sequences, so that the same walk gives a dataclass of numbers or
one of symbolic expressions that stand for them.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from accelsim.errors import ModelError

_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Leaves of a dataclass. Text, lengths and which of a union it is are whole numbers too."""

    arrays: tuple[np.ndarray, ...]
    ints: tuple[int, ...]  # each within int32
    floats: tuple[np.float32, ...]


def encode(value: Any) -> Encoded:
    """The leaves of a dataclass. Raises ModelError for a field that has no form, or no int32."""
    arrays: list[np.ndarray] = []
    ints: list[int] = []
    floats: list[np.float32] = []

    def put(hint: Any, item: Any, where: str) -> None:
        kind, parts = _kind(hint, where)
        if kind == "union":
            index = _branch(parts, item, where)
            ints.append(index)
            put(parts[index], item, where)
        elif kind == "array":
            arrays.append(np.ascontiguousarray(item))
        elif kind == "float":
            floats.append(np.float32(item))
        elif kind == "int":
            if not _INT32.min <= int(item) <= _INT32.max:
                raise ModelError(f"{where} is {item}, which does not fit int32.")
            ints.append(int(item))
        elif kind == "text":
            text = item.encode()
            ints.extend((len(text), *text))
        elif kind == "list":
            ints.append(len(item))
            for element in item:
                put(parts[0], element, where)
        elif kind == "tuple":
            for part, element in zip(parts, item, strict=True):
                put(part, element, where)
        elif kind == "dataclass":
            for name, part in _fields(hint):
                put(part, getattr(item, name), f"{hint.__name__}.{name}")

    put(type(value), value, type(value).__name__)
    return Encoded(tuple(arrays), tuple(ints), tuple(floats))


def read(
    kind: type, structure: Sequence[int], arrays: Sequence[Any], ints: Sequence[Any], floats: Any
) -> Any:
    """An instance of `kind` from its leaves: the inverse of `encode` for an encoded dataclass.

    `structure` are its encoded whole numbers; a number is taken from `ints` at the same place,
    while text, truth values, lengths and branches come from `structure` itself.
    """
    places = iter(range(len(structure)))
    array, real = iter(arrays), iter(floats)

    def take(hint: Any) -> Any:
        form, parts = _kind(hint, "")
        if form == "union":
            return take(parts[structure[next(places)]])
        if form == "none":
            return None
        if form == "array":
            return next(array)
        if form == "float":
            return next(real)
        if form == "int":
            place = next(places)
            return bool(structure[place]) if hint is bool else ints[place]
        if form == "text":
            return _text(structure, places)
        if form == "list":
            return tuple(take(parts[0]) for _ in range(structure[next(places)]))
        if form == "tuple":
            return tuple(take(part) for part in parts)
        return hint(**{name: take(part) for name, part in _fields(hint)})

    return take(kind)


def decode(kind: type, encoded: Encoded) -> Any:
    """The dataclass that was encoded."""
    return read(kind, encoded.ints, encoded.arrays, encoded.ints, encoded.floats)


def _text(structure: Sequence[int], places: Iterator[int]) -> str:
    return bytes(structure[next(places)] for _ in range(structure[next(places)])).decode()


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))


@cache
def _kind(hint: Any, where: str) -> tuple[str, tuple[Any, ...]]:
    """How a type is encoded, and the types that it is made of."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in (int, bool):
        return "int", ()
    if hint is types.NoneType:
        return "none", ()
    if hint is str:
        return "text", ()
    if hint is np.float32:
        return "float", ()
    if origin is np.ndarray or hint is np.ndarray:
        return "array", ()
    if origin in (types.UnionType, typing.Union):
        absent = [part for part in parts if part is types.NoneType]
        others = [part for part in parts if part is not types.NoneType]
        if all(_kind(part, where)[0] == "array" for part in others):
            others = others[:1]  # an array says itself of which type it is
        return ("union", (*absent, *others)) if absent or others[1:] else ("array", ())
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return "list", parts[:1]
    if origin is tuple:
        return "tuple", parts
    if isinstance(hint, type) and is_dataclass(hint):
        return "dataclass", ()
    raise ModelError(f"{where} has the type {hint}, which has no form as a parameter.")


def _branch(parts: Sequence[Any], item: Any, where: str) -> int:
    """Which type of a union a value has."""
    for index, part in enumerate(parts):
        plain = typing.get_origin(part) or part
        if isinstance(item, plain) and not (plain is int and isinstance(item, bool)):
            return index
    raise ModelError(f"{where} is a {type(item).__name__}, which its type does not allow.")
