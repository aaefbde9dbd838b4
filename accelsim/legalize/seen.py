"""Tensors seen with other pixels: the same bytes, whose pixels are counted otherwise.

What comes in: a moved map of elements. What goes out: shapes for its only source and for its output
over which it is a permutation of axes, or separable pieces. Heads of an attention lie in this way
beside one another: (rows, heads·depth) is (1, 1, rows, heads·depth) as well as (rows, 1, 1, …). It
must not know Relax.

(n, h, w, c) has n·h·w pixels of c channels in this order; another shape with as many has the same
bytes in the NPU's layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import numpy as np

from accelsim.artifacts import Seen, Shape4, Transpose
from accelsim.legalize.layout import nhwc
from accelsim.legalize.movement import Move
from accelsim.legalize.pieces import Part, TooManyPiecesError, parts_of

Expression = Any
MOST_ELEMENTS = 1 << 20  # of a map that is cut over many shapes


def transposition_of(move: Move) -> Transpose | None:
    """The permutation of axes that a map is, over its own shapes or others, or None."""
    if move.codes.size != np.prod(source_of(move)) or not _alone(move):
        return None
    own, *_ = shapes = list(_shapes(move))
    for seen in shapes:
        flat = np.arange(move.codes.size, dtype=np.int64).reshape(seen[0])
        codes = move.codes.reshape(seen[1])
        for a, b, c, d in permutations(range(4)):
            turned = flat.transpose(a, b, c, d)
            if turned.shape == codes.shape and np.array_equal(turned, codes):
                return Transpose((a, b, c, d), None if seen == own else seen)
    return None


def seen_parts(move: Move) -> tuple[tuple[Part, ...], Seen]:
    """The fewest separable pieces over other shapes than its own. Raises TooManyPiecesError."""
    best: tuple[tuple[Part, ...], Seen] | None = None
    small = move.codes.size <= MOST_ELEMENTS
    for seen in list(_shapes(move))[1:] if small and _alone(move) else []:
        try:
            parts = parts_of(move.codes.reshape(seen[1]), [seen[0]])
        except TooManyPiecesError:
            continue
        if best is None or len(parts) < len(best[0]):
            best = parts, seen
    if best is None:
        raise TooManyPiecesError
    return best


def source_of(move: Move) -> Shape4:
    """The shape of the first source."""
    return nhwc(move.leaves[0].shape, move.leaves[0].layout)


def seen_index(index: tuple[Expression, ...], own: Shape4, other: Shape4) -> list[Expression]:
    """Where an element of a tensor of shape `own` stands if it is seen as `other`."""
    if own == other:
        return list(index)
    n, h, w, c = index
    pixel = (n * own[1] + h) * own[2] + w
    width, height = other[2], other[1]
    return [pixel // (height * width), (pixel // width) % height, pixel % width, c]


def _alone(move: Move) -> bool:
    return len(move.leaves) == 1 and not move.constants


def _shapes(move: Move) -> Iterator[Seen]:
    """Shapes of source and output that are tried, their own first."""
    source, target = source_of(move), move.codes.shape
    own: Seen = (source, target)
    yield own
    for seen in product(_forms(source, target[0]), _forms(target, source[0])):
        if seen != own:
            yield seen


def _forms(shape: Shape4, images: int) -> list[Shape4]:
    """Shapes with the same pixels in one row or column, or in one of each image."""
    n, h, w, c = shape
    pixels = n * h * w
    counts = [n, 1, *([images] if pixels % images == 0 else [])]
    rows = [(count, 1, pixels // count, c) for count in counts]
    columns = [(count, pixels // count, 1, c) for count in counts]
    return list(dict.fromkeys([shape, *rows, *columns]))
