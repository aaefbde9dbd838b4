"""An index map cut into pieces that are separable axis by axis.

What comes in: where each element of an output comes from, over (n, h, w, c). What goes out: for
each piece the input, the indices that it takes and those where it places them. It must not know
operators.

A piece is separable if each coordinate of its source depends on the same axis of the output alone.
A map that is not is cut along the axis whose indices fall into the fewest classes, an index's class
being all that the map says of it besides its own coordinate: odd and even rows of a pixel shuffle,
heads of an attention, inputs of a concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I32, Shape4

Indices = NDArray[Any]
INPUT_STEP = 1 << 40  # codes of input i start at i · INPUT_STEP
MOST_PIECES = 256


class TooManyPiecesError(Exception):
    """The map falls into more than MOST_PIECES pieces."""


@dataclass(frozen=True, slots=True)
class Part:
    """out[place] = input[take]; `take` and `place` have one index array an axis."""

    input: int
    take: tuple[I32, I32, I32, I32]
    place: tuple[I32, I32, I32, I32]


@dataclass(frozen=True, slots=True)
class _Block:
    """Some indices of each axis, and of their product the inputs and coordinates in them."""

    place: tuple[Indices, ...]
    owner: Indices  # (n, h, w, c): number of the input, -1 where there is none
    coordinates: tuple[Indices, ...]  # four of (n, h, w, c)

    def some(self, axis: int, chosen: Indices) -> _Block:
        """The block of some indices along one axis."""
        place = tuple(p[chosen] if k == axis else p for k, p in enumerate(self.place))
        taken = tuple(np.take(c, chosen, axis) for c in self.coordinates)
        return _Block(place, np.take(self.owner, chosen, axis), taken)


def parts_of(codes: Indices, inputs: Sequence[Shape4]) -> tuple[Part, ...]:
    """The pieces of a map: int64 codes (n, h, w, c), input · INPUT_STEP + flat index, or < 0.

    Raises TooManyPiecesError.
    """
    owner = np.where(codes < 0, -1, codes // INPUT_STEP).astype(np.int32)
    coordinates = [np.full(codes.shape, -1, np.int32) for _ in range(4)]
    for number, shape in enumerate(inputs):
        mine = owner == number
        for whole, own in zip(
            coordinates, np.unravel_index(codes[mine] % INPUT_STEP, shape), strict=True
        ):
            whole[mine] = own
    place = tuple(np.arange(size, dtype=np.int32) for size in codes.shape)
    found: list[Part] = []
    _cut(_Block(place, owner, tuple(coordinates)), found)
    return tuple(found)


def _cut(block: _Block, found: list[Part]) -> None:
    """Append the pieces of a block."""
    first = int(block.owner.flat[0])
    if np.all(block.owner == first):
        take = None if first < 0 else _separated(block)
        if first < 0:
            return
        if take is not None:
            if len(found) == MOST_PIECES:
                raise TooManyPiecesError
            found.append(Part(first, take, _four(block.place)))
            return
    axis, classes = min(
        ((axis, _classes(block, axis)) for axis in range(4)),
        key=lambda pair: len(pair[1]) if len(pair[1]) > 1 else np.inf,
    )
    if len(classes) > MOST_PIECES + 1:
        raise TooManyPiecesError
    for chosen in classes:
        _cut(block.some(axis, chosen), found)


def _separated(block: _Block) -> tuple[I32, I32, I32, I32] | None:
    """The coordinate along each axis, where it depends on that axis alone."""
    lines = []
    for axis, values in enumerate(block.coordinates):
        corner = tuple(slice(None) if k == axis else slice(0, 1) for k in range(4))
        line = values[corner]
        if not np.array_equal(np.broadcast_to(line, values.shape), values):
            return None
        lines.append(line.reshape(-1))
    return _four(lines)


def _classes(block: _Block, axis: int) -> list[Indices]:
    """Indices along an axis, grouped by all that the map says of them but their own coordinate."""
    size = block.owner.shape[axis]
    if size == 1:
        return [np.zeros(1, np.int64)]
    others = [block.owner, *(c for k, c in enumerate(block.coordinates) if k != axis)]
    rows = [np.moveaxis(values, axis, 0).reshape(size, -1) for values in others]
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for index in range(size):
        groups.setdefault(tuple(row[index].tobytes() for row in rows), []).append(index)
    return [np.array(group, np.int64) for group in groups.values()]


def _four(arrays: Sequence[Indices]) -> tuple[I32, I32, I32, I32]:
    n, h, w, c = (np.ascontiguousarray(array, np.int32) for array in arrays)
    return n, h, w, c
