"""Bilinear resizes: random sizes, the layer, and how two peers compute the same in float32.

What comes in: a random generator, or an image with a peer's coordinates. What goes out: an
`Upscale`, or float32 results in the peer's order of operations, which decides ties. It must not
know how a peer is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from accelsim.artifacts import Interpolation, Requantize, Resize2d, Shape4
from accelsim.legalize.bilinear import exact_interpolation, tflite_interpolation
from accelsim.peers import qdq
from accelsim.peers.draws import Generator

MOST_TOTAL = 4080  # sum of the weights of an output on the NPU
F32 = np.float32
Array = NDArray[Any]
Lerp = tuple[Array, Array, Array, Array]  # pixels before and behind, and their weights


@dataclass(frozen=True, slots=True)
class Upscale:
    """Sizes of a resize, its coordinates, and whole weights of rows and columns."""

    shape: Shape4
    target: tuple[int, int]
    mode: str
    rows: Interpolation
    columns: Interpolation

    @property
    def total(self) -> int:
        """Sum of the weights of an output."""
        return self.rows.total * self.columns.total

    @property
    def output(self) -> Shape4:
        """(n, h, w, c)."""
        return (self.shape[0], *self.target, self.shape[3])

    def body(self, layout: str) -> qdq.Body:
        """The Relax operator."""
        return qdq.call(
            partial(relax.op.image.resize2d, size=self.target),
            layout=layout,
            method="linear",
            coordinate_transformation_mode=self.mode,
        )

    def layer(self, zero: int, end: Requantize) -> Resize2d:
        """The layer; `zero` is subtracted from its inputs."""
        return Resize2d(self.rows, self.columns, zero, end)


def upscale(rng: Generator, modes: Sequence[str], tflite: bool = False) -> Upscale:
    """Any sizes, ratios of small numbers more often, whose weights the NPU has."""
    find = tflite_interpolation if tflite else exact_interpolation
    while True:
        n, h, w, c = (
            int(rng.integers(low, high)) for low, high in ((1, 3), (1, 9), (2, 9), (1, 30))
        )
        ratios = (int(rng.integers(1, 5)) / int(rng.integers(1, 4)) for _ in range(2))
        near = [max(2, int(size * ratio)) for size, ratio in zip((h, w), ratios, strict=True)]
        height, width = near if rng.integers(3) else rng.integers(2, 20, 2).tolist()
        mode = str(rng.choice(modes))
        rows, columns = find(h, height, mode), find(w, width, mode)
        if isinstance(rows, str) or isinstance(columns, str):
            continue
        found = Upscale((n, h, w, c), (height, width), mode, rows, columns)
        if found.total <= MOST_TOTAL:
            return found


def pytorch_mixed(image: Array, scale: Upscale) -> Array:
    """PyTorch's quantized kernel before it rounds: of stored (n, h, w, c) integers, in float32."""
    aligned = scale.mode == "align_corners"
    lines = [
        _pytorch_line(*sizes, aligned) for sizes in zip(scale.shape[1:3], scale.target, strict=True)
    ]
    (_, _, top, bottom), (_, _, left, right) = lines
    a, b, c, d = _corners(image, lines)
    upper = left[:, None] * a + right[:, None] * b
    lower = left[:, None] * c + right[:, None] * d
    return np.asarray(top[:, None, None] * upper + bottom[:, None, None] * lower, F32)


def _pytorch_line(size: int, target: int, aligned: bool) -> Lerp:
    index = np.arange(target).astype(F32)
    if aligned:
        places = F32(size - 1) / F32(max(target - 1, 1)) * index
    else:
        places = np.maximum(F32(size) / F32(target) * (index + F32(0.5)) - F32(0.5), F32(0))
    first = places.astype(np.int64)
    behind = places - first.astype(F32)
    return first, np.minimum(first + 1, size - 1), F32(1) - behind, behind


def onnxruntime_mixed(image: Array, scale: Upscale) -> Array:
    """ONNX Runtime's Resize of (n, h, w, c) float32: four products, summed from left to right."""
    lines = [
        _onnxruntime_line(*sizes, scale.mode)
        for sizes in zip(scale.shape[1:3], scale.target, strict=True)
    ]
    (_, _, top, bottom), (_, _, left, right) = lines
    a, b, c, d = _corners(image, lines)
    upper = (left * top[:, None])[..., None] * a + (right * top[:, None])[..., None] * b
    third = upper + (left * bottom[:, None])[..., None] * c
    return np.asarray(third + (right * bottom[:, None])[..., None] * d, F32)


def _onnxruntime_line(size: int, target: int, mode: str) -> Lerp:
    """A pixel that lies before and behind at once has half its weight from each."""
    index, ratio = np.arange(target).astype(F32), F32(target) / F32(size)
    if mode == "align_corners":
        places = index * F32(size - 1) / F32(max(target - 1, 1))
    elif mode == "asymmetric":
        places = index / ratio
    else:
        places = (index + F32(0.5)) / ratio - F32(0.5)
    places = np.clip(places.astype(F32), F32(0), F32(size - 1))
    first = places.astype(np.int64)
    second = np.minimum(first + 1, size - 1)
    half = np.where(first == second, F32(0.5), F32(0))
    before, behind = np.abs(places - second.astype(F32)), np.abs(places - first.astype(F32))
    return first, second, np.maximum(before, half), np.maximum(behind, half)


def _corners(image: Array, lines: Sequence[Lerp]) -> list[Array]:
    """float32 pixels at the upper left, upper right, lower left and lower right."""
    (first, second, *_), (left, right, *_) = lines
    values = image.astype(F32)
    return [values[:, rows][:, :, columns] for rows in (first, second) for columns in (left, right)]
