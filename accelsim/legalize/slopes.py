"""TFLite's PRELU in the NPU's arithmetic: a float multiplier for each side of zero.

What comes in: quantized slopes and the tensors around them. What goes out: multipliers with which
rint(x · m) is TFLite's integer for every x, or the reason why there are none. It must not know
Relax.

TFLite scales values from zero on by one fixed-point multiplier, and those below zero, times the
integer slope of their channel, by another. Both sides are at most 255 integers, each of which
leaves an interval for m; any number that lies in all of them will do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import F32
from accelsim.legalize.frame import ConstantLeaf
from accelsim.legalize.integer_op import Quantization
from accelsim.legalize.rescale import fixed_point
from accelsim.spec.arithmetic import scale_tflite

_FAR = 300  # output steps beyond every limit
NO_MULTIPLIER = "no multiplier rounds as TFLite's two do"


def slope_multipliers(
    source: Quantization, target: Quantization, slopes: ConstantLeaf, channels: int
) -> tuple[np.float32, F32] | str:
    """Multipliers above and below zero, the latter one a channel; a reason where none fits."""
    zero = source.int8_zero_point
    above = _scaled(np.arange(1, 128 - zero), source.scale / target.scale)
    positive = _multiplier(above)
    sizes = np.arange(1, zero + 129)
    factors = slopes.values.astype(np.int64).reshape(-1) - slopes.quantization.int8_zero_point
    real = source.scale * slopes.quantization.scale / target.scale
    found: dict[int, float | None] = {}
    for factor in set(factors.tolist()):
        below = _multiplier(np.abs(_scaled(-sizes * factor, real)))
        found[factor] = None if below is None else float(np.sign(factor)) * below
    if positive is None or any(one is None for one in found.values()):
        return NO_MULTIPLIER
    each = np.array([found[factor] for factor in factors.tolist()], np.float32)
    return np.float32(positive), np.broadcast_to(each, (channels,)).copy()


def _scaled(values: NDArray[np.int64], real: np.float32) -> NDArray[np.int64]:
    mantissa, shift = (np.array(word, np.int64) for word in fixed_point(float(real)))
    return scale_tflite(values.astype(np.int64), mantissa, shift)


def _multiplier(steps: NDArray[np.int64]) -> float | None:
    """m with rint(x · m) = steps[x - 1], or beyond the limits as that is; None if there is none."""
    x = np.arange(1, steps.size + 1, dtype=np.float64)
    if not steps.any():
        return 0.0
    wanted = np.minimum(steps, _FAR)
    lowest = float(((wanted - 0.5) / x).max())
    highest = float(np.where(steps < _FAR, (wanted + 0.5) / x, np.inf).min())
    if not 0 < lowest < highest:
        return None
    middle = np.float32((lowest + highest) / 2 if np.isfinite(highest) else 2 * lowest)
    given = np.minimum(np.rint(x.astype(np.float32) * middle), _FAR)
    return float(middle) if np.array_equal(given, wanted) else None
