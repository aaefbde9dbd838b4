"""Rounding, saturation and requantization, defined once, with explicit widths.

What comes in: integer and float32 arrays. What goes out: int64 arrays before, int8 after the clamp.
Simulator, RTL and reference are each held to this module by tests; the reference never imports it.

Modes of requantization (sources: the frameworks' kernels named in the manual):

fp32       int32 → float32 (half even), × float32 (half even), round to integer (half even)
tflite     saturating rounding doubling high multiply, then rounding divide by a power of two
half_up    one exact 64-bit product, rounded once, ties up
half_even  the same product, ties to even
half_away  division by a count, ties away from zero
fixed      of sums only: two exact integer products, their sum divided once by a power of two, ties
           away from zero
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
# Multipliers are positive, normal and within 2^±100, so that no product is subnormal and none
# overflows before it is rounded to an integer that saturates.
MULTIPLIER_MIN, MULTIPLIER_MAX = np.float32(2.0**-100), np.float32(2.0**100)
ADD_MODES = ("fp32", "fixed")  # by number in the instruction
# With multipliers up to 2^22 the sum of two products of 9-bit operands cannot leave int32:
# 2·255·2^22 < 2^31. The hardware reads one bit more than 2^22 - 1 needs, and wraps beyond.
FIXED_MULTIPLIER_BITS, FIXED_SHIFT_BITS = 23, 5
FIXED_MULTIPLIER_MAX, FIXED_SHIFT_MAX = 1 << 22, 31


def legal_multiplier(multiplier: NDArray[np.float32] | np.float32) -> bool:
    """Whether every multiplier is a float32 within [2^-100, 2^100]."""
    value = np.asarray(multiplier, dtype=np.float32)
    return bool(np.all((value >= MULTIPLIER_MIN) & (value <= MULTIPLIER_MAX)))


def round_float(value: F32) -> I64:
    """float32 → integer, half to even, saturated to int32."""
    rounded = np.rint(value.astype(np.float32))
    return np.clip(rounded.astype(np.float64), INT32_MIN, INT32_MAX).astype(np.int64)


def scale_fp32(accumulator: NDArray[np.integer], multiplier: F32) -> I64:
    """Mode `fp32`: int32 accumulators times float32 multipliers, rounded to int32."""
    as_float = accumulator.astype(np.float32)
    return round_float(as_float * multiplier.astype(np.float32))


def add_fp32(
    a: NDArray[np.integer],
    b: NDArray[np.integer],
    a_scale: F32,
    b_scale: F32,
    inverse_scale: F32,
) -> I64:
    """rint((a·sa + b·sb)·inv), a and b without zero points, every operation rounded to float32."""
    left = a.astype(np.float32) * a_scale.astype(np.float32)
    right = b.astype(np.float32) * b_scale.astype(np.float32)
    return round_float((left + right) * inverse_scale.astype(np.float32))


def add_fixed(
    a: NDArray[np.integer],
    b: NDArray[np.integer],
    a_multiplier: NDArray[np.integer],
    b_multiplier: NDArray[np.integer],
    shift: NDArray[np.integer],
) -> I64:
    """(a·ma + b·mb) / 2^shift, a and b without zero points, ties away from zero.

    Defined for all parameter words: of multipliers the low FIXED_MULTIPLIER_BITS count, of the
    shift the low FIXED_SHIFT_BITS; the sum wraps modulo 2^32, which multipliers up to
    FIXED_MULTIPLIER_MAX never reach.
    """
    left = a.astype(np.int64) * _low(a_multiplier, FIXED_MULTIPLIER_BITS)
    right = b.astype(np.int64) * _low(b_multiplier, FIXED_MULTIPLIER_BITS)
    total = ((left + right - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN
    places = _low(shift, FIXED_SHIFT_BITS)
    half = (np.int64(1) << places) >> 1
    # A negative tie needs one less than a half to go down, away from zero.
    return (total + half - ((total < 0) & (half > 0))) >> places


def _low(words: NDArray[np.integer], bits: int) -> I64:
    return np.asarray(words).astype(np.int64) & ((1 << bits) - 1)


def finish(scaled: I64, zero_point: int, clamp_min: int, clamp_max: int) -> NDArray[np.int8]:
    """Add the zero point, raise to clamp_min, then lower to clamp_max."""
    shifted = np.maximum(scaled + zero_point, clamp_min)
    return np.minimum(shifted, clamp_max).astype(np.int8)


def doubling_high_multiply(a: I64, multiplier: I64) -> I64:
    """gemmlowp: high 32 bits of 2·a·m rounded, ties away from zero; INT32_MIN² saturates."""
    product = a * multiplier
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    total = product + nudge
    # C++ division truncates towards zero.
    high = np.where(total >= 0, total >> 31, -((-total) >> 31))
    return np.where((a == INT32_MIN) & (multiplier == INT32_MIN), INT32_MAX, high)


def rounding_divide_by_power(value: I64, exponent: I64) -> I64:
    """gemmlowp: value / 2^exponent, ties away from zero, exponent 0 to 31."""
    mask = (np.int64(1) << exponent) - 1
    remainder = value & mask
    threshold = (mask >> 1) + (value < 0)
    return (value >> exponent) + (remainder > threshold)


def saturate32(value: I64) -> I64:
    """Limit to int32."""
    return np.clip(value, INT32_MIN, INT32_MAX)


def scale_tflite(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> I64:
    """Mode `tflite`: shift > 0 shifts left first (saturating to int32), shift < 0 divides last."""
    left = np.maximum(shift, 0)
    right = np.maximum(-shift, 0)
    raised = saturate32(accumulator.astype(np.int64) << left)
    return rounding_divide_by_power(doubling_high_multiply(raised, mantissa), right)


def _scale_once(accumulator: NDArray[np.integer], mantissa: I64, shift: I64, even: bool) -> I64:
    """accumulator · mantissa · 2^(shift-31), the exact product rounded once, saturated to int32."""
    product = accumulator.astype(np.int64) * mantissa
    right = 31 - shift
    if np.any(right < 1) or np.any(right > 62):
        raise ValueError("shift must lie in -31 to 30")
    floor = product >> right
    remainder = product - (floor << right)
    half = np.int64(1) << (right - 1)
    up = remainder > half
    tie = remainder == half
    up |= tie & ((floor & 1) == 1) if even else tie
    return saturate32(floor + up)


def scale_half_up(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> I64:
    """Mode `half_up`: the exact product rounded once, ties towards +∞. Shift -31 to 30."""
    return _scale_once(accumulator, mantissa, shift, even=False)


def scale_half_even(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> I64:
    """Mode `half_even`: the exact product rounded once, ties to even. Shift -31 to 30."""
    return _scale_once(accumulator, mantissa, shift, even=True)


def scale_half_away(accumulator: NDArray[np.integer], count: NDArray[np.integer]) -> I64:
    """Mode `half_away`: accumulator / count, ties away from zero, count ≥ 1."""
    value = accumulator.astype(np.int64)
    half = count.astype(np.int64) // 2
    magnitude = (np.abs(value) + half) // count
    return np.where(value < 0, -magnitude, magnitude)
