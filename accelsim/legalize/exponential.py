"""The table of exponentials of TFLite's int8 softmax: gemmlowp's fixed point.

What comes in: the scale of the input. What goes out: 256 words, Q0.31. It must not know Relax.
"""

from __future__ import annotations

import math

import numpy as np

from accelsim.artifacts import I32
from accelsim.legalize.rescale import fixed_point
from accelsim.spec.arithmetic import (
    I64,
    INT32_MAX,
    doubling_high_multiply,
    rounding_divide_by_power,
    saturate32,
)

INTEGER_BITS = 5  # of a scaled difference, Q5.26
SMALLEST_SCALE = 2.0**-26  # with which TFLite's multiplier is above one
_FRACTION = 31 - INTEGER_BITS
_EIGHTH, _THIRD = 1895147668, 715827883  # exp(-1/8) and 1/3 in Q0.31
# exp(-2^k) in Q0.31 for k = -2 to 4
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def exponentials(scale: float) -> I32 | None:
    """exp(-d · scale) for d = 0 to 255, 0 where d · scale reaches 31; None for tiny scales.

    The multiplier of the differences has 31 bits; a scale of 32 and more counts as the largest.
    """
    if scale <= SMALLEST_SCALE:
        return None
    real = min(scale * 2.0**_FRACTION, 2.0**31 - 1)
    mantissa, shift = fixed_point(real)
    reach = math.floor((2**INTEGER_BITS - 1) * 2.0 ** (_FRACTION - shift))
    differences = -np.arange(256, dtype=np.int64)
    near = -differences <= reach
    raised = np.where(near, differences, 0) << shift
    words = exponential(doubling_high_multiply(raised, np.full(256, mantissa, np.int64)))
    return np.where(near, words, 0).astype(np.int32)


def exponential(value: I64) -> I64:
    """exp(value) in Q0.31 of values in Q5.26, none positive.

    What is left of a value after taking off multiples of 1/4 goes through a series around -1/8;
    then each bit of the multiple brings a factor.
    """
    quarter = 1 << (_FRACTION - 2)
    rest = (value & (quarter - 1)) - quarter
    result = _series(rest << INTEGER_BITS)
    multiple = (rest - value) >> (_FRACTION - 2)
    for bit, power in enumerate(_POWERS):
        result = np.where((multiple >> bit) & 1 == 1, _times(result, power), result)
    return np.where(value == 0, INT32_MAX, result)


def _series(a: I64) -> I64:
    """exp(-1/8) · (1 + x + x²/2 + x³/6 + x⁴/24) with x = a + 1/8, in Q0.31."""
    x = a + (1 << 28)
    square = doubling_high_multiply(x, x)
    cube = doubling_high_multiply(square, x)
    fourth = rounding_divide_by_power(doubling_high_multiply(square, square), np.array(2))
    sixth = _times(fourth + cube, _THIRD)  # (x⁴/4 + x³) / 3
    tail = rounding_divide_by_power(sixth + square, np.array(1))
    return saturate32(_EIGHTH + _times(x + tail, _EIGHTH))


def _times(value: I64, factor: int) -> I64:
    return doubling_high_multiply(value, np.full_like(value, factor))
