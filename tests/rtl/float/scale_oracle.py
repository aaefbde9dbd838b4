"""Requantization of one int32 value in Python's unbounded integers and NumPy's float32.

What comes in: a mode's number in an instruction, a value, and parameter words (unsigned 32 bits).
What goes out: the scaled integer. It knows the instruction table's text and none of the RTL.
"""

from __future__ import annotations

import numpy as np

FP32, TFLITE, HALF_UP, HALF_EVEN, HALF_AWAY = range(5)
INTEGER_MODES = (TFLITE, HALF_UP, HALF_EVEN, HALF_AWAY)
LOWEST, HIGHEST = -(2**31), 2**31 - 1


def signed(word: int, bits: int = 32) -> int:
    """The low bits of a word as a signed number."""
    low = int(word) % (1 << bits)
    return low - (1 << bits) if low >> (bits - 1) else low


def saturated(value: int) -> int:
    """Limited to int32."""
    return min(max(value, LOWEST), HIGHEST)


def wrapped(value: int) -> int:
    """Modulo 2^32, signed."""
    return signed(value, 32)


def divided_away(numerator: int, divisor: int) -> int:
    """To the nearest integer, ties away from zero."""
    magnitude = (2 * abs(numerator) + divisor) // (2 * divisor)
    return magnitude if numerator >= 0 else -magnitude


def doubling_high(a: int, b: int) -> int:
    """What gemmlowp's C++ does: a nudge, then a division that truncates."""
    if a == b == LOWEST:
        return HIGHEST
    nudge = 2**30 if a * b >= 0 else 1 - 2**30
    total = a * b + nudge
    return total // 2**31 if total >= 0 else -(-total // 2**31)


def tflite(value: int, mantissa: int, shift: int) -> int:
    """Raised, multiplied and divided, each step saturated or rounded."""
    raised = saturated(value << shift) if shift > 0 else value
    return divided_away(doubling_high(raised, mantissa), 1 << max(-shift, 0))


def rounded(mode: int, numerator: int, divisor: int) -> int:
    """One exact quotient rounded once."""
    floor, rest = divmod(numerator, divisor)
    if 2 * rest != divisor:
        return floor + (2 * rest > divisor)
    if mode == HALF_UP:
        return floor + 1
    if mode == HALF_EVEN:
        return floor + floor % 2
    return floor + (numerator > 0)


def scaled(mode: int, value: int, multiplier: int, shift: int = 0) -> int:
    """A signed value scaled by parameter words."""
    if mode == FP32:
        product = np.float32(value) * np.array(multiplier, np.uint32).view(np.float32)
        return saturated(int(np.clip(np.rint(np.float64(product)), -(2.0**40), 2.0**40)))
    mantissa, places = signed(multiplier), signed(shift, 6)
    if mode == TFLITE:
        return tflite(value, mantissa, places)
    return saturated(rounded(mode, value * mantissa, 1 << (31 - places)))


def edge_words() -> list[int]:
    """Signed 32-bit numbers at and around every power of two, zero and both ends."""
    near = {s * (1 << k) + d for k in range(32) for d in (-1, 0, 1) for s in (1, -1)}
    return sorted(word for word in near if LOWEST <= word <= HIGHEST)
