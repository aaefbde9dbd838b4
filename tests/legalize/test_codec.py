"""Any dataclass of integer definitions travels as arrays and numbers, and comes back the same."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelsim.artifacts import Add, Conv2d, LayerOp, Pool2d, Requantize
from accelsim.errors import ModelError
from accelsim.legalize.codec import Encoded, decode, encode, read

CLASSES = typing.get_args(LayerOp)
INT32 = st.integers(-(2**31), 2**31 - 1)


def same(a: Any, b: Any) -> bool:
    """Equality that looks into arrays and distinguishes types."""
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of the type may have."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is np.ndarray:
        return arrays(typing.get_args(parts[1])[0])
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(values, parts))
    if origin is tuple and parts[1:] == (Ellipsis,):
        return st.lists(values(parts[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, parts))
    simple = {
        int: INT32,
        bool: st.booleans(),
        str: st.text(max_size=12),
        types.NoneType: st.none(),
        np.float32: st.floats(width=32, allow_nan=False).map(np.float32),
    }
    return simple[hint] if hint in simple else instances(hint)


def arrays(dtype: type) -> st.SearchStrategy[Any]:
    """Arrays of one to four axes."""
    shape = st.lists(st.integers(1, 3), min_size=1, max_size=4)

    def make(drawn: tuple[list[int], int]) -> np.ndarray:
        return np.random.default_rng(drawn[1]).integers(-128, 128, drawn[0]).astype(dtype)

    return st.tuples(shape, st.integers(0, 2**32 - 1)).map(make)


@cache
def instances(kind: type) -> st.SearchStrategy[Any]:
    """Any instance of a dataclass."""
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{f.name: values(hints[f.name]) for f in fields(kind)})


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_definition_survives_encoding(kind: type, data: st.DataObject) -> None:
    value = data.draw(instances(kind))
    encoded = encode(value)
    transported = Encoded(
        encoded.arrays,
        tuple(np.array(encoded.ints, np.int32).tolist()),
        tuple(np.array(encoded.floats, np.float32)),
    )
    assert same(decode(kind, transported), value)


def test_structure_stays_while_numbers_are_replaced() -> None:
    ends = tuple(
        (count, Requantize(np.ones(1, np.float32), -count, -128, 127)) for count in (4, 6, 9)
    )
    pool = Pool2d("sum", (3, 3), (1, 1), (1, 1, 1, 1), 5, ends[0][1], by_count=ends)
    encoded = encode(pool)
    names = [f"i{place}" for place in range(len(encoded.ints))]
    mirrored = read(Pool2d, encoded.ints, "wxyz", names, ())
    assert mirrored.kind == "sum" and mirrored.requantize.mode == "fp32"
    assert mirrored.requantize.shift is None and len(mirrored.by_count) == 3
    assert [end.multiplier for _, end in mirrored.by_count] == ["x", "y", "z"]
    place = encoded.ints.index(5)
    assert mirrored.input_zero_point == names[place]


def test_numbers_beyond_int32_are_refused_by_name() -> None:
    one = np.float32(1)
    with pytest.raises(ModelError, match=r"Add\.zero_point is 2147483648"):
        encode(Add(0, 0, one, one, one, 2**31, -128, 127))


def test_value_of_another_type_is_refused_by_name() -> None:
    arrays = np.zeros((1, 1, 1, 1), np.int8), np.zeros(1, np.int32)
    end: Any = Requantize(np.ones(1, np.float32), 0, -128, 127, shift=3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"Requantize\.shift is a int"):
        encode(Conv2d(*arrays, 0, 0, end))


def test_field_type_without_a_form_is_refused_by_name() -> None:
    @dataclass(frozen=True)
    class Odd:
        weights: dict[str, int]

    with pytest.raises(ModelError, match=r"Odd\.weights has the type"):
        encode(Odd({}))
