"""Rounding, saturation and requantization, defined once, with explicit widths.

What comes in: integer and float32 arrays. What goes out: int64 arrays before, int8 after the clamp.
Simulator, RTL and reference are each held to this module by tests; the reference never imports it.

Modes of requantization (sources: the frameworks' kernels named in the manual):

fp32       int32 → float32 (half even), × float32 (half even), round to integer (half even)
tflite     saturating rounding doubling high multiply, then rounding divide by a power of two
half_up    one exact 64-bit product with mantissa·2^(shift-31), rounded once, ties up
half_even  the same product, ties to even
half_away  the same product, ties away from zero; with `reciprocal` it divides by a count
fixed      of sums only: two exact integer products, their sum divided once by a power of two, ties
           away from zero

Mantissas are any int32; of a shift the low SHIFT_BITS count, as a signed number (-32 to 31).
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
MODES = ("fp32", "tflite", "half_up", "half_even", "half_away")  # by number in an instruction
ADD_MODES = ("fp32", "fixed", "tflite")
BINARY_KINDS = ("multiply", "minimum", "maximum")
SHIFT_BITS = 6
TFLITE_ADD_SHIFT = 20  # both operands of TFLite's int8 ADD and SUB are raised by it
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
    subtract: bool = False,
) -> I64:
    """rint((a·sa ± b·sb)·inv), a and b without zero points, every operation rounded to float32."""
    left = a.astype(np.float32) * a_scale.astype(np.float32)
    right = b.astype(np.float32) * b_scale.astype(np.float32)
    total = left - right if subtract else left + right
    return round_float(total * inverse_scale.astype(np.float32))


def add_fixed(
    a: NDArray[np.integer],
    b: NDArray[np.integer],
    a_multiplier: NDArray[np.integer],
    b_multiplier: NDArray[np.integer],
    shift: NDArray[np.integer],
    subtract: bool = False,
) -> I64:
    """(a·ma ± b·mb) / 2^shift, a and b without zero points, ties away from zero.

    Defined for all parameter words: of multipliers the low FIXED_MULTIPLIER_BITS count, of the
    shift the low FIXED_SHIFT_BITS; the sum wraps modulo 2^32, which multipliers up to
    FIXED_MULTIPLIER_MAX never reach.
    """
    left = a.astype(np.int64) * _low(a_multiplier, FIXED_MULTIPLIER_BITS)
    right = b.astype(np.int64) * _low(b_multiplier, FIXED_MULTIPLIER_BITS)
    total = wrap32(left - right if subtract else left + right)
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
    """gemmlowp: high 32 bits of 2·a·m rounded, ties up; INT32_MIN² saturates."""
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


def _split(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> tuple[I64, I64, I64]:
    """accumulator · mantissa · 2^(shift-31): its floor, what is left, and a half in its units."""
    product = accumulator.astype(np.int64) * mantissa
    right = 31 - shift
    floor = product >> right
    half = np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0)
    return floor, product - (floor << right), half


def scale_half_up(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> I64:
    """Mode `half_up`: the exact product rounded once, ties towards +∞, saturated to int32."""
    floor, rest, half = _split(accumulator, mantissa, shift)
    return saturate32(floor + ((rest >= half) & (half > 0)))


def scale_half_even(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> I64:
    """Mode `half_even`: the exact product rounded once, ties to even, saturated to int32."""
    floor, rest, half = _split(accumulator, mantissa, shift)
    tie = (rest == half) & (half > 0)
    return saturate32(floor + ((rest > half) | (tie & ((floor & 1) == 1))))


def scale_half_away(accumulator: NDArray[np.integer], mantissa: I64, shift: I64) -> I64:
    """Mode `half_away`: the exact product rounded once, ties away from zero, saturated to int32."""
    floor, rest, half = _split(accumulator, mantissa, shift)
    tie = (rest == half) & (half > 0)
    return saturate32(floor + ((rest > half) | (tie & (floor >= 0))))


def reciprocal(count: int) -> tuple[int, int]:
    """(mantissa, shift) with which `half_away` divides by a count, 1 to 2^24.

    The mantissa is 2^k / count rounded up, so ties still round away. It is exact for every
    |accumulator| < 2^29: the error stays below |accumulator|·2^-30 / count, and what is no tie is
    at least 1 / (2·count) away from one.
    """
    if not 1 <= count <= 1 << 24:
        raise ValueError(f"count is {count}, use 1 to 2^24")
    places = 30 + (count - 1).bit_length()
    return -(-(1 << places) // count), 31 - places


def scale(
    mode: str,
    accumulator: NDArray[np.integer],
    multiplier: NDArray[np.integer],
    shift: NDArray[np.integer],
) -> I64:
    """int32 accumulators scaled in any of MODES; words as they lie in parameter memory (int32)."""
    if mode == "fp32":
        return scale_fp32(accumulator, np.ascontiguousarray(multiplier, np.int32).view(np.float32))
    scales = {
        "tflite": scale_tflite,
        "half_up": scale_half_up,
        "half_even": scale_half_even,
        "half_away": scale_half_away,
    }
    return scales[mode](accumulator, multiplier.astype(np.int64), signed_shift(shift))


def signed_shift(words: NDArray[np.integer]) -> I64:
    """The low SHIFT_BITS of parameter words as signed numbers."""
    low = _low(words, SHIFT_BITS)
    return low - ((low >> (SHIFT_BITS - 1)) << SHIFT_BITS)


def add_tflite(
    a: NDArray[np.integer],
    b: NDArray[np.integer],
    words: tuple[NDArray[np.integer], ...],
    subtract: bool = False,
) -> I64:
    """TFLite's int8 ADD and SUB, a and b without zero points; the sum wraps modulo 2^32.

    `words`: mantissas of a, b and the sum, then their shifts.
    """
    a_mantissa, b_mantissa, mantissa = (word.astype(np.int64) for word in words[:3])
    a_shift, b_shift, shift = (signed_shift(word) for word in words[3:])
    left = scale_tflite(a.astype(np.int64) << TFLITE_ADD_SHIFT, a_mantissa, a_shift)
    right = scale_tflite(b.astype(np.int64) << TFLITE_ADD_SHIFT, b_mantissa, b_shift)
    return scale_tflite(wrap32(left - right if subtract else left + right), mantissa, shift)


def wrap32(value: I64) -> I64:
    """Modulo 2^32, as a signed number."""
    return ((value - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN


def binary(kind: str, a: NDArray[np.integer], b: NDArray[np.integer]) -> I64:
    """Product, minimum or maximum of two operands without their zero points."""
    left, right = a.astype(np.int64), b.astype(np.int64)
    if kind == "multiply":
        return left * right
    return np.minimum(left, right) if kind == "minimum" else np.maximum(left, right)


def divide_half_away(accumulator: NDArray[np.integer], count: NDArray[np.integer]) -> I64:
    """accumulator / count, ties away from zero, count ≥ 1."""
    value = accumulator.astype(np.int64)
    magnitude = (np.abs(value) + count.astype(np.int64) // 2) // count
    return np.where(value < 0, -magnitude, magnitude)
