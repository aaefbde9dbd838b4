"""Maps of tensors whose pixels are counted otherwise are permutations or few pieces."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accelsim.legalize.pieces import TooManyPiecesError
from accelsim.legalize.seen import seen_parts, transposition_of

ROWS = 300  # more than pieces may be


def move(codes: Any, *shapes: tuple[int, ...]) -> Any:
    """What `legalize.movement` makes of an island with so many sources, over (n, h, w, c)."""
    leaves = tuple(SimpleNamespace(shape=shape, layout="nhwc") for shape in shapes)
    return SimpleNamespace(codes=codes, leaves=leaves, constants=())


def source(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


@pytest.mark.parametrize("shape", [(1, 1, ROWS, 24), (ROWS, 1, 1, 24), (1, ROWS, 1, 24)])
def test_keys_of_an_attention_are_a_transposition(shape: tuple[int, int, int, int]) -> None:
    keys = source(*shape).reshape(1, ROWS, 3, 8).transpose(0, 2, 3, 1)
    found = transposition_of(move(keys, shape))
    assert found is not None and found.seen is not None
    flat = np.arange(keys.size).reshape(found.seen[0]).transpose(found.axes)
    np.testing.assert_array_equal(flat.reshape(keys.shape), keys)


def test_a_permutation_of_its_own_axes_is_seen_as_it_is() -> None:
    shape = (2, 3, 4, 5)
    found = transposition_of(move(source(*shape).transpose(0, 3, 1, 2), shape))
    assert found is not None and (found.axes, found.seen) == ((0, 3, 1, 2), None)


def test_heads_of_rows_are_a_piece_each() -> None:
    heads = source(ROWS, 1, 1, 24).reshape(1, ROWS, 3, 8).transpose(0, 2, 1, 3)
    found = move(heads, (ROWS, 1, 1, 24))
    assert transposition_of(found) is None
    parts, seen = seen_parts(found)
    assert len(parts) == 3
    result = np.full(seen[1], -1, np.int64)
    for part in parts:
        result[np.ix_(*part.place)] = source(*seen[0])[np.ix_(*part.take)]
    np.testing.assert_array_equal(result.reshape(heads.shape), heads)


def test_a_map_of_two_sources_is_seen_as_it_is() -> None:
    found = move(source(ROWS, 1, 1, 24).reshape(1, 24, ROWS, 1), (ROWS, 1, 1, 24), (1, 1, 1, 1))
    assert transposition_of(found) is None
    with pytest.raises(TooManyPiecesError):
        seen_parts(found)
