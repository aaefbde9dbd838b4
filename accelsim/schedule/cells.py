"""Gathers as regular pieces: which parts of an output come from the same sources by fixed steps.

What comes in: an `artifacts.Assemble` and the shape of its output. What goes out: `Cell`s, boxes of
output pixels with constant steps, each with the pieces that cover it. It must not know addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Assemble

LARGEST_PERIOD = 8  # interleavings that are looked for: resizing and depth-to-space up to 8
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Run:
    """Indices first, first + step, … of one axis; those of each piece have steps of their own."""

    first: int
    step: int
    count: int
    takes: tuple[tuple[int, int], ...]  # (first, step) in the input of each piece


@dataclass(frozen=True, slots=True)
class Cell:
    """Output pixels of one run along each of n, h, w, and the pieces that cover them."""

    runs: tuple[Run, Run, Run]
    pieces: tuple[int, ...]


def cells(assemble: Assemble, shape: tuple[int, int, int]) -> Iterator[Cell]:
    """The output cut into cells, those that no piece covers included."""
    places = [_positions(assemble, axis, size) for axis, size in enumerate(shape)]
    classes = [_classes(p) for p in places]
    for choice in product(*classes):
        covering = np.logical_and.reduce([covered for covered, _ in choice])
        pieces = tuple(int(i) for i in np.nonzero(covering)[0])
        runs = [
            _runs(
                indices, [assemble.pieces[p].take[axis][places[axis][p, indices]] for p in pieces]
            )
            for axis, (_, indices) in enumerate(choice)
        ]
        for n, h, w in product(*runs):
            yield Cell((n, h, w), pieces)


def _positions(assemble: Assemble, axis: int, size: int) -> Indices:
    """(pieces, size): where in a piece's index arrays an output index stands, -1 for nowhere."""
    result = np.full((len(assemble.pieces), size), -1, np.int64)
    for row, piece in zip(result, assemble.pieces, strict=True):
        row[piece.place[axis]] = np.arange(len(piece.place[axis]))
    return result


def _classes(positions: Indices) -> list[tuple[NDArray[np.bool_], Indices]]:
    """Output indices grouped by the pieces that have them; each with its mask of pieces."""
    found: dict[bytes, list[int]] = {}
    covered = positions >= 0
    for i in range(positions.shape[1]):
        found.setdefault(covered[:, i].tobytes(), []).append(i)
    return [(covered[:, at[0]], np.array(at, np.int64)) for at in found.values()]


def _runs(indices: Indices, takes: Sequence[Indices]) -> list[Run]:
    """The fewest runs over interleavings of the indices."""
    columns = np.stack([indices, *(np.asarray(t, np.int64) for t in takes)])
    best: list[Run] = []
    for period in range(1, min(LARGEST_PERIOD, len(indices)) + 1):
        runs = [run for r in range(period) for run in _split(columns[:, r::period])]
        if not best or len(runs) < len(best):
            best = runs
    return best


def _split(columns: Indices) -> list[Run]:
    """Consecutive columns with equal steps as runs; steps of inputs are not negative."""
    runs, start, total = [], 0, columns.shape[1]
    steps = np.diff(columns, axis=1)
    rising = np.all(steps >= 0, axis=0)
    # Places between two equal steps never end a run.
    turns = 1 + np.flatnonzero(np.any(np.diff(steps, axis=1) != 0, axis=0))
    ends = np.append(turns, total - 1)
    while start < total:
        end = start + 1
        if end < total and rising[start]:
            end = int(ends[np.searchsorted(ends, start, side="right")]) + 1
        step = steps[:, start].tolist() if end > start + 1 else [1] + [0] * (len(columns) - 1)
        first = columns[:, start].tolist()
        takes = tuple(zip(first[1:], step[1:], strict=True))
        runs.append(Run(first[0], step[0], end - start, takes))
        start = end
    return runs
