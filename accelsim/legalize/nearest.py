"""Which pixel a nearest-neighbour resize takes.

What comes in: sizes of an axis and how coordinates are transformed and rounded. What goes out:
indices, computed exactly, or the reason why float32 would take others. It must not know Relax.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HALF = Fraction(1, 2)
_EPSILON = np.float32(1e-5)  # TVM adds it before it rounds down


def nearest_indices(size: int, target: int, mode: str, rounding: str) -> NDArray[Any] | str:
    """The source index of each of `target` outputs of an axis of `size` elements.

    `mode` is "asymmetric" (i·size/target, PyTorch's nearest), "half_pixel" ((i + 1/2)·size/target
    - 1/2, its nearest-exact) or "align_corners" (i·(size - 1)/(target - 1)). A reason where float32
    arithmetic, as TVM and PyTorch do it, finds another index somewhere.
    """
    if mode not in ("asymmetric", "half_pixel", "align_corners"):
        return f"it resizes by the coordinates {mode}"
    parts = (size, target) if mode != "align_corners" else (size - 1, max(target - 1, 1))
    shift = _HALF if mode == "half_pixel" else Fraction(0)
    scale = np.float32(parts[0]) / np.float32(parts[1])
    indices = []
    for i in range(target):
        exact = _rounded((i + shift) * Fraction(*parts) - shift, rounding)
        near = (np.float32(i) + np.float32(shift)) * scale - np.float32(shift)
        found = {_rounded(Fraction(float(near)), rounding)}
        if rounding in ("floor", ""):
            found.add(math.floor(near + _EPSILON))
        if found != {exact}:
            return f"float32 takes other pixels than the exact quotient {size}/{target} does"
        indices.append(exact)
    return np.clip(np.array(indices, np.int64), 0, size - 1)


def _rounded(place: Fraction, rounding: str) -> int:
    if rounding in ("floor", ""):
        return math.floor(place)
    if rounding == "ceil":
        return math.ceil(place)
    if rounding == "round_prefer_floor":
        return math.ceil(place - _HALF)
    if rounding == "round_prefer_ceil" or place >= 0:
        return math.floor(place + _HALF)
    return math.ceil(place - _HALF)
