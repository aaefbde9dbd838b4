"""Index maps fall into as few separable pieces as hand analysis says; these rebuild the maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accelsim.legalize.nearest import nearest_indices
from accelsim.legalize.pieces import INPUT_STEP, MOST_PIECES, TooManyPiecesError, parts_of

Codes = NDArray[Any]


def codes_of(*shape: int, number: int = 0) -> Codes:
    """The identity of one input."""
    return number * INPUT_STEP + np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


def rebuilt(codes: Codes, inputs: list[tuple[int, int, int, int]]) -> tuple[int, Codes]:
    """How many pieces there are, and the map that they make; -1 where none lies."""
    parts = parts_of(codes, inputs)
    result = np.full(codes.shape, -1, np.int64)
    for part in parts:
        place = np.ix_(*part.place)
        assert np.all(result[place] == -1)
        result[place] = codes_of(*inputs[part.input], number=part.input)[np.ix_(*part.take)]
    return len(parts), result


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda x: x, 1),
        (lambda x: x[:, ::2, 1:, ::-1], 1),
        (lambda x: np.tile(x, (1, 1, 2, 3)), 1),
        (lambda x: x.reshape(2, 3, 4, 2, 4).swapaxes(3, 4).reshape(2, 3, 4, 8), 1),
        (lambda x: np.pad(x, ((0, 0), (1, 2), (0, 1), (2, 0)), constant_values=-1), 1),
        (lambda x: x.reshape(2, 3, 4, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 6, 8, 2), 4),
        (lambda x: x.reshape(2, 1, 12, 8), 3),
        (lambda x: x.reshape(2, 1, 1, 96), 12),
        (lambda x: x.reshape(2, 3, 4, 2, 4).transpose(0, 3, 1, 2, 4)[0], 2),
    ],
)
def test_a_map_of_one_input_falls_into_the_pieces_of_its_structure(make: Any, pieces: int) -> None:
    codes = make(codes_of(2, 3, 4, 8))
    count, result = rebuilt(codes, [(2, 3, 4, 8)])
    assert count == pieces
    np.testing.assert_array_equal(result, codes)


def test_a_concatenation_has_a_piece_for_each_input() -> None:
    inputs = [(1, 2, 3, 5), (1, 2, 3, 1), (1, 2, 3, 8)]
    codes = np.concatenate([codes_of(*s, number=k) for k, s in enumerate(inputs)], 3)
    count, result = rebuilt(codes, inputs)
    assert count == 3
    np.testing.assert_array_equal(result, codes)


def test_a_map_without_structure_is_refused() -> None:
    side = MOST_PIECES
    codes = codes_of(1, side, side, 1).transpose(0, 2, 1, 3)
    with pytest.raises(TooManyPiecesError):
        parts_of(codes, [(1, side, side, 1)])


@pytest.mark.parametrize(("size", "target"), [(4, 8), (5, 7), (9, 3), (3, 10), (1, 6), (7, 7)])
def test_nearest_takes_the_pixels_of_pytorch(size: int, target: int) -> None:
    import torch

    image = torch.arange(size, dtype=torch.float32).reshape(1, 1, size)
    for mode, form in (
        ("nearest", ("asymmetric", "floor")),
        ("nearest-exact", ("half_pixel", "round_prefer_ceil")),
    ):
        expected = torch.nn.functional.interpolate(image, size=target, mode=mode)[0, 0].int()
        np.testing.assert_array_equal(nearest_indices(size, target, *form), expected.numpy())


def test_an_index_that_float32_does_not_find_is_refused() -> None:
    refused = [
        (size, target)
        for size in range(1, 64)
        for target in range(1, 64)
        if isinstance(nearest_indices(size, target, "asymmetric", "floor"), str)
    ]
    assert refused
    assert isinstance(nearest_indices(4, 8, "other", "floor"), str)
