"""Scenes of several handwritten digits, and what a detector should find in them.

What comes in: digit images and labels, a seed. What goes out: float32 images (scenes, 1, 48, 48)
and int64 boxes (scenes, 4, 5): class, left, top, width, height in pixels, and -1 where there is no
fourth digit. It must not know the detector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import F32
from accelsim.zoo.digits import resize_bilinear

SIDE = 48
MOST = 4  # digits in a scene
_SIZES = (14, 16, 20)
_TRIES = 30

Boxes = NDArray[np.int64]


def compose(images: F32, labels: NDArray[Any], count: int, seed: int) -> tuple[F32, Boxes]:
    """`count` scenes of one to four digits that do not overlap.

    Args:
        images: (samples, 1, 16, 16) normalised digits.
        labels: (samples,) classes.
        count: scenes.
        seed: seeds digits, sizes and places.
    """
    rng = np.random.default_rng(seed)
    sized = {size: resize_bilinear(images[:, 0], size) for size in _SIZES}
    scenes = np.full((count, 1, SIDE, SIDE), images.min(), np.float32)
    boxes = np.full((count, MOST, 5), -1, np.int64)
    for scene, found in zip(scenes[:, 0], boxes, strict=True):
        for slot in range(int(rng.integers(1, MOST + 1))):
            size = int(rng.choice(_SIZES))
            place = _free_place(rng, found[:slot], size)
            if place is None:
                break
            digit = int(rng.integers(len(labels)))
            left, top = place
            scene[top : top + size, left : left + size] = sized[size][digit]
            found[slot] = labels[digit], left, top, size, size
    return scenes, boxes


def _free_place(rng: np.random.Generator, taken: Boxes, size: int) -> tuple[int, int] | None:
    """Left and top of a square that touches no other, or None where none was found."""
    for _ in range(_TRIES):
        left, top = (int(one) for one in rng.integers(0, SIDE - size + 1, 2))
        apart = (
            (left + size <= taken[:, 1])
            | (taken[:, 1] + taken[:, 3] <= left)
            | (top + size <= taken[:, 2])
            | (taken[:, 2] + taken[:, 4] <= top)
        )
        if apart.all():
            return left, top
    return None
