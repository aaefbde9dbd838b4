"""The exponential of TFLite's and CMSIS-NN's int8 softmax: gemmlowp's, on negative Q5.26 values.

What comes in: the multiplier of the differences. What goes out: the 256 words of a `Softmax`.
"""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import I32
from accelsim.spec.arithmetic import (
    I64,
    INT32_MAX,
    doubling_high_multiply,
    rounding_divide_by_power,
    saturate32,
)

# exp(-1/8) and 1/3 in Q0.31; exp(-2^(i-2)) for i = 0 to 6, from exp(-1/4) to exp(-16).
EIGHTH, THIRD = 1895147668, 715827883
POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
FRACTION_BITS = 26


def softmax_words(mantissa: int, shift: int, smallest: int) -> I32:
    """exp(-d·scale·beta) in Q0.31 for d = 0 to 255, 0 where -d < `smallest`.

    -d·2^shift, saturated to int32, times mantissa / 2^31 is -d·scale·beta in Q5.26.
    """
    differences = -np.arange(256, dtype=np.int64)
    raised = saturate32(differences << shift)
    scaled = doubling_high_multiply(raised, np.int64(mantissa) + 0 * raised)
    words = exponential(scaled)
    return np.where(differences >= smallest, words, 0).astype(np.int32)


def exponential(value: I64) -> I64:
    """exp(value) in Q0.31 of negative or zero Q5.26 values."""
    quarter = np.int64(1) << (FRACTION_BITS - 2)
    rest = (value & (quarter - 1)) - quarter  # in [-1/4, 0)
    result = _near(rest << 5)
    remainder = rest - value  # a multiple of a quarter
    for bit, power in enumerate(POWERS):
        chosen = (remainder >> (FRACTION_BITS - 2 + bit)) & 1 == 1
        result = np.where(chosen, _times(result, power), result)
    return np.where(value == 0, INT32_MAX, result)


def _near(a: I64) -> I64:
    """exp(a) in Q0.31 for a in [-1/4, 0): a series around -1/8."""
    x = a + (np.int64(1) << 28)
    x2 = doubling_high_multiply(x, x)
    x3 = doubling_high_multiply(x2, x)
    x4_quarter = rounding_divide_by_power(doubling_high_multiply(x2, x2), np.array(2))
    sixth = doubling_high_multiply(x4_quarter + x3, np.int64(THIRD) + 0 * x)
    tail = rounding_divide_by_power(sixth + x2, np.array(1))
    return saturate32(EIGHTH + _times(x + tail, EIGHTH))


def _times(value: I64, factor: int) -> I64:
    return doubling_high_multiply(value, np.int64(factor) + 0 * value)
