"""Data movement: transposition, and tensors put together from pieces."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from accelsim.artifacts import Assemble, Piece, Region, Requantize, Shape4, Transpose
from accelsim.errors import ModelError
from accelsim.schedule import schedule
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CONFIGURATIONS = pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
Index = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@CONFIGURATIONS
@pytest.mark.parametrize("axes", list(permutations(range(4))), ids=str)
def test_every_transposition_equals_oracle(axes: tuple[int, int, int, int], config: Config) -> None:
    shape = (2, 3, 17, 9)
    out = tuple(shape[axis] for axis in axes)
    check(layers.one(Transpose(axes), out, shape), config)  # type: ignore[arg-type]


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [(1, 1, 40, 100), (1, 20, 20, 8), (1, 1, 1, 33)], ids=str)
@pytest.mark.parametrize("axes", [(0, 1, 3, 2), (0, 3, 1, 2), (0, 2, 1, 3)], ids=str)
def test_transpositions_of_other_sizes_equal_oracle(
    axes: tuple[int, int, int, int], shape: Shape4, config: Config
) -> None:
    out = tuple(shape[axis] for axis in axes)
    check(layers.one(Transpose(axes), out, shape), config)  # type: ignore[arg-type]


@CONFIGURATIONS
@pytest.mark.parametrize(
    ("shape", "out", "axes", "seen"),
    [
        ((1, 1, 19, 24), (1, 3, 8, 19), (0, 1, 3, 2), ((1, 1, 19, 24), (1, 1, 24, 19))),
        ((19, 1, 1, 24), (1, 3, 8, 19), (0, 1, 3, 2), ((1, 1, 19, 24), (1, 1, 24, 19))),
        ((10, 1, 1, 9), (2, 3, 3, 5), (0, 1, 3, 2), ((2, 1, 5, 9), (2, 1, 9, 5))),
    ],
    ids=("heads_of_a_row", "rows_as_images", "two_images"),
)
def test_transposition_of_tensors_seen_with_other_pixels_equals_oracle(
    shape: Shape4,
    out: Shape4,
    axes: tuple[int, int, int, int],
    seen: tuple[Shape4, Shape4],
    config: Config,
) -> None:
    check(layers.one(Transpose(axes, seen), out, shape), config)


@CONFIGURATIONS
@pytest.mark.parametrize("depth", [3, 8, 17])
def test_pieces_of_a_tensor_seen_with_other_pixels_equal_oracle(depth: int, config: Config) -> None:
    rows, heads = 11, 3
    pieces = tuple(
        Piece(
            0,
            box((0, 1), (0, 1), (0, rows), (head * depth, (head + 1) * depth)),
            box((0, 1), (head, head + 1), (0, rows), (0, depth)),
        )
        for head in range(heads)
    )
    out = (1, heads, rows, depth)
    op = Assemble(pieces, 0, ((1, 1, rows, heads * depth), out))
    check(layers.one(op, out, (rows, 1, 1, heads * depth)), config)


def box(*axes: tuple[int, int] | list[int] | range) -> Index:
    """Index arrays from (start, end) pairs or lists."""
    arrays = [np.arange(*a) if isinstance(a, tuple) else np.array(a) for a in axes]
    n, h, w, c = (a.astype(np.int32) for a in arrays)
    return n, h, w, c


def pad(shape: Shape4, pads: tuple[tuple[int, int], ...]) -> Region:
    """Padding of any axis by -5."""
    out = tuple(a + n + b for n, (a, b) in zip(shape, pads, strict=True))
    place = box(*((a, a + n) for n, (a, _) in zip(shape, pads, strict=True)))
    take = box(*((0, n) for n in shape))
    return layers.one(Assemble((Piece(0, take, place),), -5), out, shape)  # type: ignore[arg-type]


def concat(axis: int, shapes: list[Shape4], ends: list[Requantize | None] | None = None) -> Region:
    pieces, at = [], 0
    for i, shape in enumerate(shapes):
        place = [(0, n) for n in shape]
        place[axis] = (at, at + shape[axis])
        at += shape[axis]
        end = ends[i] if ends else None
        pieces.append(Piece(i, box(*((0, n) for n in shape)), box(*place), 3 * i - 4, end))
    out = list(shapes[0])
    out[axis] = at
    return layers.one(Assemble(tuple(pieces)), tuple(out), *shapes)  # type: ignore[arg-type]


def gather(shape: Shape4, take: Index, end: Requantize | None = None) -> Region:
    """One piece that fills the output."""
    out = tuple(len(a) for a in take)
    place = box(*((0, n) for n in out))
    op = Assemble((Piece(0, take, place, 6, end),))
    return layers.one(op, out, shape)  # type: ignore[arg-type]


def depth_to_space(shape: Shape4, size: int) -> Region:
    n, h, w, c = shape
    deep = c // size**2
    pieces = [
        Piece(
            0,
            box((0, n), (0, h), (0, w), ((i * size + j) * deep, (i * size + j + 1) * deep)),
            box((0, n), range(i, h * size, size), range(j, w * size, size), (0, deep)),
        )
        for i in range(size)
        for j in range(size)
    ]
    return layers.one(Assemble(tuple(pieces)), (n, h * size, w * size, deep), shape)


def space_to_depth(shape: Shape4, size: int) -> Region:
    n, h, w, c = shape
    pieces = [
        Piece(
            0,
            box((0, n), range(i, h, size), range(j, w, size), (0, c)),
            box((0, n), (0, h // size), (0, w // size), (k * c, (k + 1) * c)),
        )
        for k, (i, j) in enumerate(np.ndindex(size, size))
    ]
    out = (n, h // size, w // size, c * size**2)
    return layers.one(Assemble(tuple(pieces)), out, shape)


def shuffle(channels: int, groups: int) -> list[int]:
    return np.arange(channels).reshape(groups, -1).T.reshape(-1).tolist()


TWICE, UNEVEN = [i // 2 for i in range(10)], [0, 0, 1, 2, 3, 3, 4, 5]
RNG = np.random.default_rng(12)
ENDS: list[Requantize | None] = [layers.end(RNG, mode, 0.8) for mode in layers.MODES]
CASES = {
    "pad": pad((1, 6, 7, 9), ((0, 0), (1, 2), (2, 0), (0, 0))),
    "pad_channels": pad((2, 4, 5, 9), ((0, 0), (0, 0), (0, 0), (3, 12))),
    "pad_everything": pad((1, 4, 5, 16), ((1, 1), (1, 0), (0, 2), (16, 1))),
    "concat_rows": concat(1, [(1, 3, 5, 20), (1, 4, 5, 20)]),
    "concat_aligned": concat(3, [(1, 6, 5, 16), (1, 6, 5, 32), (1, 6, 5, 7)]),
    "concat_odd": concat(3, [(2, 6, 5, 5), (2, 6, 5, 17), (2, 6, 5, 1), (2, 6, 5, 30)]),
    "concat_requantized": concat(3, [(1, 6, 5, 16), (1, 6, 5, 32)], ENDS[:2]),
    "concat_odd_requantized": concat(
        3, [(1, 6, 5, n) for n in (3, 20, 9, 16, 2)], [*ENDS[:4], None]
    ),
    "concat_rows_requantized": concat(1, [(1, 3, 5, 20), (1, 4, 5, 20)], [None, ENDS[3]]),
    "concat_large": concat(3, [(1, 40, 41, 12), (1, 40, 41, 9)]),
    "slice": gather((1, 9, 9, 20), box([0], (2, 8), (3, 9), (0, 13))),
    "slice_of_channels": gather((1, 9, 9, 40), box([0], (0, 9), (0, 9), (5, 30))),
    "slice_to_one_channel": gather((1, 9, 9, 40), box([0], (0, 9), (0, 9), [17])),
    "slice_with_steps": gather((3, 9, 10, 20), box([0, 2], (0, 9, 2), (1, 10, 3), (0, 20, 3))),
    "flip": gather((1, 4, 5, 9), box([0], [3, 2, 1, 0], [4, 3, 2, 1, 0], range(8, -1, -1))),
    "shuffle": gather((1, 5, 6, 24), box([0], (0, 5), (0, 6), shuffle(24, 3))),
    "shuffle_wide": gather((1, 4, 4, 116), box([0], (0, 4), (0, 4), shuffle(116, 2))),
    "permuted": gather((1, 4, 4, 70), box([0], (0, 4), (0, 4), RNG.permutation(70).tolist())),
    "nearest": gather((1, 5, 6, 9), box([0], TWICE, UNEVEN, (0, 9))),
    "repeated_channels": gather((1, 5, 6, 3), box([0], (0, 5), (0, 6), [0, 1, 2] * 5)),
    "swapped_blocks": gather((1, 5, 6, 48), box([0], (0, 5), (0, 6), [*range(32, 48), *range(16)])),
    "requantized": gather((1, 9, 9, 20), box([0], (0, 9), (0, 9), (0, 20)), ENDS[1]),
    "depth_to_space": depth_to_space((1, 4, 5, 36), 2),
    "depth_to_space_aligned": depth_to_space((1, 4, 5, 64), 2),
    "space_to_depth": space_to_depth((2, 6, 8, 5), 2),
    "space_to_depth_by_3": space_to_depth((1, 9, 6, 16), 3),
}


@CONFIGURATIONS
@pytest.mark.parametrize("case", CASES)
def test_assembly_equals_oracle(case: str, config: Config) -> None:
    check(CASES[case], config)


def test_what_no_piece_covers_is_filled_within_a_block_too() -> None:
    holes = Piece(0, box([0], (0, 4), (0, 4), (0, 5)), box([0], (0, 4), (0, 4), range(1, 20, 4)))
    other = Piece(1, box([0], [1], (0, 4), (0, 3)), box([0], [3], (0, 4), [0, 6, 10]), 0, ENDS[2])
    shapes = (1, 4, 4, 8), (1, 2, 4, 9)
    check(layers.one(Assemble((holes, other), 77), (1, 5, 4, 21), *shapes), EDGE8)


def test_resizing_by_two_needs_four_cells() -> None:
    twice = [i // 2 for i in range(16)]
    program = check(gather((1, 8, 8, 16), box([0], twice, twice, (0, 16))), EDGE8)
    assert program.layers[0].facts["cells"] == 4


def test_a_piece_beyond_its_input_is_refused_by_name() -> None:
    region = gather((1, 4, 4, 8), box([0], (1, 5), (0, 4), (0, 8)))
    with pytest.raises(ModelError, match="layer t0: a piece takes elements beyond"):
        schedule(region, EDGE8)
