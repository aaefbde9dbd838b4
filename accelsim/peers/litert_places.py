"""Random models that take elements by place: reversals, repeats and gathers of several axes.

What comes in: a random generator. What goes out: a `Trial` with LiteRT's outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import Assemble, Piece
from accelsim.peers.case import Trial
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.litert_draw import int8s, scale, zero
from accelsim.peers.litert_model import TfliteTensor, constant, tflite_model
from accelsim.peers.litert_moves import chosen, moved, random_shape
from accelsim.peers.shapes import all_of, four


def reverse(rng: Generator) -> Trial:
    """Some axes, from their ends; LiteRT takes only such as follow each other."""
    shape = random_shape(rng)
    first = int(rng.integers(4))
    axes = list(range(first, int(rng.integers(first + 1, 5))))
    take = [line[::-1] if axis in axes else line for axis, line in enumerate(all_of(shape))]
    level = ((scale(rng),), zero(rng))
    model = tflite_model(
        "REVERSE_V2",
        [TfliteTensor(shape, *level), constant(axes)],
        [TfliteTensor(shape, *level)],
        "ReverseV2Options",
    )

    def body(build: Any, values: list[Any]) -> Any:
        value = values[0]
        for axis in axes:
            indices = relax.const(take[axis].astype(np.int64), "int64")
            value = build.emit(relax.op.take(value, indices, axis))
        return value

    return moved([int8s(rng, *shape)], model, chosen(take), body=body)


def broadcast(rng: Generator) -> Trial:
    """Axes of one element, repeated."""
    wanted = random_shape(rng)
    once = [bool(rng.integers(2)) for _ in wanted]
    shape = tuple(1 if one else length for one, length in zip(once, wanted, strict=True))
    take = [
        np.zeros(length, np.int64) if one else np.arange(length)
        for one, length in zip(once, wanted, strict=True)
    ]
    level = ((scale(rng),), zero(rng))
    model = tflite_model(
        "BROADCAST_TO",
        [TfliteTensor(shape, *level), constant(wanted)],
        [TfliteTensor(wanted, *level)],
        "BroadcastToOptions",
        version=2,
    )
    return moved([int8s(rng, *shape)], model, chosen(take))


def gather_nd(rng: Generator) -> Trial:
    """Given rows of several images, by two numbers each."""
    n, h, w, c = random_shape(rng)
    count = int(rng.integers(1, 20))
    images, rows = (rng.integers(0, length, count) for length in (n, h))
    level = ((scale(rng),), zero(rng))
    model = tflite_model(
        "GATHER_ND",
        [TfliteTensor((n, h, w, c), *level), constant(np.stack([images, rows], axis=1))],
        [TfliteTensor((count, w, c), *level)],
        "GatherNdOptions",
    )
    pieces = tuple(
        Piece(
            0,
            four([[image], [row], np.arange(w), np.arange(c)]),
            four([[place], [0], np.arange(w), np.arange(c)]),
        )
        for place, (image, row) in enumerate(zip(images, rows, strict=True))
    )
    return moved([int8s(rng, n, h, w, c)], model, (Assemble(pieces), (count, 1, w, c)))


PLACES: dict[str, Maker] = {
    "reverse_v2": reverse,
    "broadcast_to": broadcast,
    "gather_nd": gather_nd,
}
