"""Softmax and layer normalization of one row of channels, in integers, defined once.

What comes in: int8 rows (…, n) without pad lanes. What goes out: int8 rows. Simulator, RTL and
reference are each held to this module by tests; the reference never imports it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accelsim.spec.arithmetic import (
    INT32_MAX,
    doubling_high_multiply,
    rounding_divide_by_power,
    saturate32,
)

I64 = NDArray[np.int64]
I8 = NDArray[np.int8]

LARGEST_ROW = 4096
"""Elements of a row: 128 blocks of 32 lanes. Then the sum of exponentials fits into 32 bits."""
SUM_SHIFT = 12  # exponentials are Q0.31, their sum is Q12.19
_C48_17, _C32_17 = 1515870810, 1010580540  # 48/17 and 32/17 in Q2.29
ROOT_BITS = 48  # a variance is raised by an even power of two until it has 47 or 48 bits
RECIPROCAL_BITS = 54  # 2^54 / root has 31 or 32 bits
DEVIATION_BITS = 20  # a normalized element is Q11.20
OFFSET_BITS = 16  # fraction bits of an offset


def softmax(x: I8, table: NDArray[np.integer]) -> I8:
    """Softmax over the last axis as TFLite's int8 kernel computes it: scale 1/256, zero point -128.

    `table[d]`, Q0.31, is exp(-d·scale·beta) for d = max - x (see `softmax_table`). The sum of the
    exponentials, each rounded to Q12.19, has a reciprocal by three Newton steps in Q2.29; each
    exponential times it is rounded twice (doubling high multiply, then a power of two).
    """
    values = x.astype(np.int64)
    exponentials = np.asarray(table, np.int64)[values.max(axis=-1, keepdims=True) - values]
    parts = rounding_divide_by_power(exponentials, np.array(SUM_SHIFT))
    total = parts.sum(axis=-1, keepdims=True) & 0xFFFFFFFF
    scale, bits = softmax_reciprocal(total)
    scaled = doubling_high_multiply(exponentials, scale)
    return np.clip(_divide(scaled, bits + 31 - 8) - 128, -128, 127).astype(np.int8)


def _divide(value: I64, exponent: I64) -> I64:
    """`rounding_divide_by_power`, 0 beyond an exponent of 31: long rows have such small shares."""
    return np.where(exponent > 31, 0, rounding_divide_by_power(value, np.minimum(exponent, 31)))


def softmax_reciprocal(total: I64) -> tuple[I64, I64]:
    """(Q0.31 scale, bits over one) of a sum in Q12.19: 1 / sum = scale · 2^-bits.

    A sum of 0 counts as one without leading zeros.
    """
    zeros = leading_zeros(total)
    fraction = ((total << zeros) & 0xFFFFFFFF) - (1 << 31)  # Q0.31, the leading one taken off
    # Half the denominator, (fraction + 1) / 2 with One = INT32_MAX, rounded away from zero.
    both = fraction + INT32_MAX
    denominator = np.where(both >= 0, (both + 1) >> 1, -((1 - both) >> 1))
    x = _C48_17 - doubling_high_multiply(denominator, np.int64(_C32_17) + 0 * denominator)
    for _ in range(3):
        error = (1 << 29) - doubling_high_multiply(denominator, x)
        x = x + saturate32(doubling_high_multiply(x, error) << 2)
    return saturate32(x << 1), SUM_SHIFT - zeros


def leading_zeros(value: I64) -> I64:
    """Leading zeros of 32-bit words, 0 of a word of 0."""
    zeros = np.zeros(value.shape, np.int64)
    for step in (16, 8, 4, 2, 1):
        small = (value << zeros) < (1 << (32 - step))
        zeros = zeros + np.where(small & (value > 0), step, 0)
    return zeros


def softmax_table(scale: float, beta: float = 1.0) -> NDArray[np.int32]:
    """exp(-d·scale·beta) in Q0.31 for d = 0 to 255, nearest and at most 1 - 2^-31."""
    exponents = -np.arange(256) * (float(scale) * beta)
    table: NDArray[np.int32] = np.minimum(np.rint(np.exp(exponents) * 2.0**31), INT32_MAX).astype(
        np.int32
    )
    return table


def layer_norm(
    x: I8,
    gain: NDArray[np.integer],
    offset: NDArray[np.integer],
    gain_bits: int,
    epsilon: int,
    ends: tuple[int, int, int],
) -> I8:
    """`layer_norm_steps` plus a zero point, within limits: `ends` are zero point, low and high."""
    zero_point, low, high = ends
    steps = layer_norm_steps(x, gain, offset, gain_bits, epsilon)
    result: I8 = np.minimum(np.maximum(steps + zero_point, low), high).astype(np.int8)
    return result


def layer_norm_steps(
    x: I8, gain: NDArray[np.integer], offset: NDArray[np.integer], gain_bits: int, epsilon: int
) -> I64:
    """(x - mean) / sqrt(variance + ε) · gain + offset over the last axis of n elements, int32.

    With S = Σx, V = n·Σx² - S² + `epsilon` (in units of n² input steps²) and t = n·x - S, exact:
    root = floor(sqrt(V·4^h)), h the largest with V·4^h < 2^48; r = floor(2^54 / root);
    z = round(t·r·2^(h-34)), Q11.20, 0 where V is 0; y = round((z·gain + offset·2^(4+gain_bits)) ·
    2^-(20+gain_bits)); every rounding is to the nearest, ties up. `gain` has units of
    2^-gain_bits output steps, `offset` of 2^-16.
    """
    values = x.astype(np.int64)
    count = values.shape[-1]
    total = values.sum(axis=-1, keepdims=True)
    squares = (values * values).sum(axis=-1, keepdims=True)
    variance = count * squares - total * total + epsilon
    raised, height = raise_variance(variance)
    root = np.vectorize(math.isqrt, otypes=[np.int64])(raised)
    inverse = (np.int64(1) << RECIPROCAL_BITS) // np.maximum(root, 1)
    places = RECIPROCAL_BITS - DEVIATION_BITS - height
    product = (count * values - total) * inverse
    deviation = (product + (np.int64(1) << (places - 1))) >> places
    deviation = np.where(variance == 0, 0, deviation)
    shift = DEVIATION_BITS + gain_bits
    raised_offset = np.asarray(offset, np.int64) << (shift - OFFSET_BITS)
    sums = deviation * np.asarray(gain, np.int64) + raised_offset
    return saturate32((sums + (np.int64(1) << (shift - 1))) >> shift)


def raise_variance(variance: I64) -> tuple[I64, I64]:
    """(variance·4^h, h) with the largest h for which it stays below 2^48; h is 23 for 0."""
    height = np.zeros(variance.shape, np.int64)
    for step in (16, 8, 4, 2, 1):
        grown = height + step
        fits = (grown <= ROOT_BITS // 2 - 1) & (
            variance >> np.clip(ROOT_BITS - 2 * grown, 0, 63) == 0
        )
        height = np.where(fits, grown, height)
    return variance << (2 * height), height
