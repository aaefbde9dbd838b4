"""Rounding, sums, softmax and layer normalization with Python's integers, from the manual's words.

Integers are unbounded and fractions exact, floats are NumPy's float32. Shares nothing with the
simulator or the specification's arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, isqrt

import numpy as np

INT32_MAX = (1 << 31) - 1
MODES = ("fp32", "tflite", "half_up", "half_even", "half_away")


def wrap32(x: int) -> int:
    return (int(x) + (1 << 31)) % (1 << 32) - (1 << 31)


def saturate(x: int) -> int:
    return min(max(x, -(1 << 31)), INT32_MAX)


def to_even(x: Fraction) -> int:
    return round(x)


def up(x: Fraction) -> int:
    return floor(x + Fraction(1, 2))


def away(x: Fraction) -> int:
    return up(x) if x >= 0 else -up(-x)


def round_even(x: np.float32) -> int:
    return to_even(Fraction(float(x)))


def round_away(x: int, shift: int) -> int:
    """x / 2^shift, ties away from zero."""
    return away(Fraction(x, 1 << shift))


def as_float(word: int) -> np.float32:
    return np.int32(word).view(np.float32)


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def low_signed(word: int) -> int:
    """Bits 5:0 as a signed number."""
    low = word & 63
    return low - 64 if low >= 32 else low


def high_product(a: int, b: int) -> int:
    """The high half of 2·a·b, ties up; only (-1)·(-1) saturates."""
    return min(up(Fraction(a * b, 1 << 31)), INT32_MAX)


def tflite(value: int, mantissa: int, shift: int) -> int:
    raised = saturate(value << shift) if shift > 0 else value
    return round_away(high_product(raised, mantissa), max(0, -shift))


def scaled(mode: int, value: int, words: list[int]) -> int:
    """An int32 value times what the words after the bias say, as an int32."""
    if MODES[mode] == "fp32":
        return saturate(round_even(np.float32(np.float32(value) * as_float(words[0]))))
    mantissa, shift = words[0], low_signed(words[1])
    if MODES[mode] == "tflite":
        return tflite(value, mantissa, shift)
    rounding = {"half_up": up, "half_even": to_even, "half_away": away}[MODES[mode]]
    return saturate(rounding(value * mantissa * power(shift - 31)))


def float_sum(a: int, b: int, words: list[int]) -> int:
    left, right = (
        np.float32(np.float32(x) * as_float(w)) for x, w in ((a, words[0]), (b, words[1]))
    )
    return saturate(round_even(np.float32(np.float32(left + right) * as_float(words[2]))))


def fixed_sum(a: int, b: int, words: list[int]) -> int:
    total = a * (words[0] & 0x7FFFFF) + b * (words[1] & 0x7FFFFF)
    return round_away(wrap32(total), words[2] & 31)


def tflite_sum(a: int, b: int, words: list[int], sign: int) -> int:
    left = tflite(a << 20, words[0], low_signed(words[3]))
    right = tflite(b << 20, words[1], low_signed(words[4]))
    return tflite(wrap32(left + sign * right), words[2], low_signed(words[5]))


def summed(mode: int, a: int, b: int, words: list[int], subtract: int) -> int:
    """The scaled sum or difference of two operands; a difference negates the second product."""
    if mode == 2:
        return tflite_sum(a, b, words, -1 if subtract else 1)
    return (float_sum, fixed_sum)[mode](a, -b if subtract else b, words)


def combined(kind: int, a: int, b: int) -> int:
    return (a * b, min(a, b), max(a, b))[kind]


def softmax(row: list[int], table: list[int]) -> list[int]:
    """TFLite's int8 softmax, its exponentials from a table."""
    exponentials = [table[max(row) - x] for x in row]
    total = sum(round_away(e, 12) for e in exponentials) % (1 << 32)
    zeros = 32 - total.bit_length() if total else 0
    over_one = (total << zeros) % (1 << 32) - (1 << 31)
    half = away(Fraction(over_one + INT32_MAX, 2))
    x = wrap32(1515870810 + high_product(half, -1010580540))
    for _ in range(3):
        x = wrap32(x + saturate(high_product(x, (1 << 29) - high_product(half, x)) * 4))
    scale, places = saturate(2 * x), 12 - zeros + 31 - 8
    shares = (away(high_product(e, scale) * power(-places)) for e in exponentials)
    # What is less than a half of a unit of a 64-bit fraction is nothing.
    return [min(max((0 if places > 31 else s) - 128, -128), 127) for s in shares]


def layernorm(
    row: list[int], gains: list[int], offsets: list[int], gain_bits: int, epsilon: int
) -> list[int]:
    """Steps of each element before zero point and limits; every rounding is ties up."""
    count, total = len(row), sum(row)
    variance = count * sum(x * x for x in row) - total * total + epsilon
    height = 23
    while variance * 4**height >= 1 << 48:
        height -= 1
    root = isqrt(variance * 4**height)
    steps = []
    for x, gain, offset in zip(row, gains, offsets, strict=True):
        inverse = (1 << 54) // root if root else 0
        deviation = up((count * x - total) * inverse * power(height - 34))
        value = Fraction(deviation * gain, 1 << (20 + gain_bits)) + Fraction(offset, 1 << 16)
        steps.append(saturate(up(value)))
    return steps
