"""Which pixels a bilinear resize mixes along one axis, and how, in integers.

What comes in: sizes of an axis and how coordinates are transformed. What goes out: an
`Interpolation`, or the reason why there is none. It must not know Relax.

Coordinates outside the axis are moved to its ends. PyTorch and ONNX Runtime take float32
coordinates for the exact quotients that stand here; TFLite rounds their step to a multiple of
1/1024, and its int8 kernel computes with these multiples exactly.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from accelsim.artifacts import Interpolation

_HALF = Fraction(1, 2)
_UNIT = 1 << 10  # TFLite's coordinates are multiples of 1 / _UNIT


def exact_interpolation(size: int, target: int, mode: str) -> Interpolation | str:
    """`target` outputs of an axis of `size` elements.

    `mode` is "half_pixel" ((i + 1/2)·size/target - 1/2), "pytorch_half_pixel" (the same, 0 for one
    output), "align_corners" (i·(size - 1)/(target - 1), 0 for one output) or "asymmetric"
    (i·size/target).
    """
    step, shift = Fraction(size, target), Fraction(0)
    if mode == "align_corners":
        step = Fraction(size - 1, max(target - 1, 1))
    elif mode == "half_pixel" or (mode == "pytorch_half_pixel" and target > 1):
        shift = step / 2 - _HALF
    elif mode not in ("pytorch_half_pixel", "asymmetric"):
        return f"it resizes by the coordinates {mode}"
    return _mixed([i * step + shift for i in range(target)], size)


def tflite_interpolation(size: int, target: int, mode: str) -> Interpolation | str:
    """The same as TFLite's int8 kernel has it, with coordinates in whole 1/1024."""
    step, shift = (_UNIT * size + target // 2) // target, 0
    if mode == "align_corners":
        if target > 1:
            step = (_UNIT * (size - 1) + (target - 1) // 2) // (target - 1)
    elif mode == "half_pixel":
        shift = step // 2 - _UNIT // 2
    elif mode != "asymmetric":
        return f"TFLite does not resize by the coordinates {mode}"
    places = [i * step + shift for i in range(target)]
    if places[-1] >= size * _UNIT:
        return f"TFLite's coordinates of {target} pixels leave the {size} that there are"
    return _mixed([Fraction(place, _UNIT) for place in places], size)


def _mixed(places: list[Fraction], size: int) -> Interpolation:
    """The pixels before and behind each place, with the smallest whole weights."""
    inside = [min(max(place, Fraction(0)), Fraction(size - 1)) for place in places]
    first = [int(place) for place in inside]
    unit = lcm(*(place.denominator for place in inside))
    behind = [int((place - at) * unit) for place, at in zip(inside, first, strict=True)]
    weights = [(unit - weight, weight) for weight in behind]
    return Interpolation(np.array(first, np.int32), np.array(weights, np.int32))
