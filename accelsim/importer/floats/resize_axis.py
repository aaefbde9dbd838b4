"""Where the elements of a resized axis come from, as ONNX's Resize defines it.

What comes in: an axis before and after, and the node's attributes. What goes out: places of the
nearest elements, or a matrix of weights. It must not know PyTorch.

It computes in float32 what decides between two places, as ONNX Runtime does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a Resize."""

    before: int
    after: int
    factor: float
    region: tuple[float, float]  # what is cropped, as shares of the extent
    coordinates: str
    cubic: float
    smooth: bool
    exclude: bool

    @property
    def moved(self) -> bool:
        """Whether elements move although the extent stays."""
        return self.factor != 1 or self.region != (0.0, 1.0)


def coordinates(axis: Axis) -> Array:
    """The place in the original of every element of the result, in float64."""
    x = np.arange(axis.after, dtype=np.float64)
    n, factor = axis.before, axis.factor
    length = n * factor  # of the result before it is cut to whole elements
    match axis.coordinates:
        case "half_pixel":
            return (x + 0.5) / factor - 0.5
        case "half_pixel_symmetric":
            adjusted = axis.after / length
            return n / 2 * (1 - adjusted) + (x + 0.5) / factor - 0.5
        case "pytorch_half_pixel":
            return (x + 0.5) / factor - 0.5 if length > 1 else np.full_like(x, -0.5)
        case "align_corners":
            return x * (n - 1) / (length - 1) if length > 1 else np.zeros_like(x)
        case "asymmetric":
            return x / factor
        case "tf_crop_and_resize":
            start, end = axis.region
            if length > 1:
                return start * (n - 1) + x * (end - start) * (n - 1) / (length - 1)
            return 0.5 * (start + end) * (n - 1) + np.zeros_like(x)
        case _:
            raise ValueError(f"no coordinates are called '{axis.coordinates}'")


def outside(axis: Axis) -> Array:
    """Which elements of the result lie outside of the original."""
    found = coordinates(axis)
    beyond: Array = (found < 0) | (found > axis.before - 1)
    return beyond


def places(axis: Axis, rounding: str) -> Array:
    """int64: the nearest element of the original for every element of the result.

    Rounding "simple" is that of opsets before 11: up where an axis shrinks, else down.
    """
    found = coordinates(axis)
    kinds: dict[str, Any] = {
        "floor": np.floor,
        "simple": np.ceil if axis.factor < 1 else np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda one: np.ceil(one - 0.5),
        "round_prefer_ceil": lambda one: np.floor(one + 0.5),
    }
    nearest: Array = np.clip(kinds[rounding](found), 0, axis.before - 1).astype(np.int64)
    return nearest


def weights(axis: Axis, mode: str) -> Array:
    """float32 (after, before): how much of each element of the original goes into each result."""
    narrow = min(axis.factor, 1.0) if axis.smooth else 1.0
    reach = {"linear": 1, "cubic": 2}[mode] / narrow
    matrix = np.zeros((axis.after, axis.before))
    for row, place in enumerate(coordinates(axis)):
        taps = np.arange(np.ceil(place - reach), np.floor(place + reach) + 1)
        parts = _kernel(np.abs(taps - place) * narrow, mode, axis.cubic)
        if axis.exclude:
            parts = np.where((taps < 0) | (taps > axis.before - 1), 0.0, parts)
        if axis.exclude or axis.smooth:
            parts = parts / parts.sum()
        np.add.at(matrix[row], np.clip(taps, 0, axis.before - 1).astype(np.int64), parts)
    return matrix.astype(np.float32)


def _kernel(distance: Array, mode: str, a: float) -> Array:
    if mode == "linear":
        return np.maximum(0.0, 1.0 - distance)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    parts: Array = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    return parts
