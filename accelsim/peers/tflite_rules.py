"""From the scales of a TensorFlow Lite model to the integers of its layers, as its kernels derive.

What comes in: scales as float32 numbers. What goes out: mantissas, shifts, tables. It must not know
flatbuffers or LiteRT.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from accelsim.artifacts import I8, I32, Requantize, TfliteAdd
from accelsim.peers.exponential import softmax_words
from accelsim.peers.shapes import Pair, integer_scale
from accelsim.spec.arithmetic import (
    I64,
    TFLITE_ADD_SHIFT,
    finish,
    rounding_divide_by_power,
    scale_tflite,
)

INT8 = (-128, 127)
SOFTMAX_BITS = 5  # integer bits of an exponent


def fixed_point(real: float) -> Pair:
    """(mantissa, shift) of a positive number: mantissa · 2^(shift - 31), 31 bits."""
    fraction, shift = math.frexp(real)
    mantissa = math.floor(fraction * 2.0**31 + 0.5)
    if mantissa == 1 << 31:
        mantissa, shift = mantissa >> 1, shift + 1
    return (0, 0) if shift < -31 else (mantissa, shift)


def requantize(mode: str, reals: Sequence[float], zero: int, limits: Pair = INT8) -> Requantize:
    """Requantization by real multipliers, one or one a channel."""
    pairs = [fixed_point(real) for real in reals]
    return integer_scale(mode, [m for m, _ in pairs], [s for _, s in pairs], zero, limits)


def conv_multipliers(source: float, weights: Sequence[float], output: float) -> list[float]:
    """Of convolutions and fully connected layers: the quotient in double precision.

    FULLY_CONNECTED multiplies by it as it is, the NPU by its first 31 bits: the same but where a
    product lies within 2^-24 of a half, which accumulators below 2^23 hardly reach.
    """
    return [single(source) * single(weight) / single(output) for weight in weights]


def matmul_multiplier(a: float, b: float, output: float) -> float:
    """Of BATCH_MATMUL: the product in float32, the quotient in double precision."""
    return float(np.float32(a) * np.float32(b)) / single(output)


def single(real: float) -> float:
    """A number as a float32 holds it."""
    return float(np.float32(real))


def add_words(a: float, b: float, output: float) -> TfliteAdd:
    """Of ADD and SUB: both operands to half the larger scale, raised, and the sum back."""
    twice = 2 * max(single(a), single(b))
    pairs = [
        fixed_point(single(a) / twice),
        fixed_point(single(b) / twice),
        fixed_point(twice / ((1 << TFLITE_ADD_SHIFT) * single(output))),
    ]
    (a_mantissa, a_shift), (b_mantissa, b_shift), (mantissa, shift) = pairs
    return TfliteAdd(a_mantissa, b_mantissa, mantissa, a_shift, b_shift, shift)


def product_multiplier(a: float, b: float, output: float) -> float:
    """Of MUL: all in float32."""
    return float(np.float32(a) * np.float32(b) / np.float32(output))


def mean_words(source: float, output: float, count: int) -> Pair:
    """Of MEAN: the mantissa is raised by the bits of the count, then divided by it."""
    mantissa, shift = fixed_point(single(source) / single(output))
    places = min(count.bit_length() - 1, 32, 31 + shift)
    return (mantissa << places) // count, shift - places


def softmax_table(scale: float, beta: float) -> I32:
    """Of SOFTMAX."""
    real = min(single(beta) * single(scale) * (1 << (31 - SOFTMAX_BITS)), float((1 << 31) - 1))
    mantissa, shift = fixed_point(real)
    largest = ((1 << SOFTMAX_BITS) - 1) * 2.0 ** (31 - SOFTMAX_BITS - shift)
    return softmax_words(mantissa, shift, -math.floor(largest))


def float_table(
    function: Callable[[np.ndarray], np.ndarray],
    source: tuple[float, int],
    output: tuple[float, int],
) -> I8:
    """table[x + 128] of a function in float32: dequantized, computed, divided and rounded away."""
    real = np.float32(source[0]) * (np.arange(-128, 128) - source[1]).astype(np.float32)
    steps = function(real.astype(np.float32)).astype(np.float32) * (
        np.float32(1) / np.float32(output[0])
    )
    rounded = np.copysign(np.floor(np.abs(steps.astype(np.float64)) + 0.5), steps)
    return finish(rounded.astype(np.int64), output[1], *INT8)


def rescaled_table(
    source: tuple[float, int], output: tuple[float, int], real: float, limits: Pair = INT8
) -> I8:
    """table[x + 128] of a change of scale by double rounding."""
    mantissa, shift = (np.array(word, np.int64) for word in fixed_point(real))
    centred = np.arange(-128, 128) - source[1]
    return finish(scale_tflite(centred, mantissa, shift), output[1], *limits)


def root_table(source: tuple[float, int], output: tuple[float, int]) -> I8:
    """table[x + 128] of SQRT: float32, cut to whole steps. There are no values below zero."""
    centred = np.maximum(np.arange(-128, 128) - source[1], 0).astype(np.float32)
    real = np.sqrt(centred * np.float32(source[0])) / np.float32(output[0])
    return finish(real.astype(np.int64), output[1], *INT8)


def inverse_root_table(source: tuple[float, int], output: tuple[float, int]) -> I8:
    """table[x + 128] of RSQRT, of values from zero up; zero has the largest output."""
    scale = 1.0 / float(np.sqrt(np.float32(source[0])) * np.float32(output[0]))
    mantissa, shift = fixed_point(scale)
    steps = [1 << 20]
    for value in range(1, 256):
        inverse, places = _inverse_root(value)
        ends = (np.array(1), np.array(inverse), np.array(places + 20))
        fine = scale_tflite(*(end.astype(np.int64) for end in ends))
        words = (np.array(mantissa, np.int64), np.array(shift - 20, np.int64))
        steps.append(int(scale_tflite(fine, *words)))
    centred = np.maximum(np.arange(-128, 128) - source[1], 0)
    return finish(np.array(steps)[centred], output[1], *INT8)


def _inverse_root(value: int) -> Pair:
    """(31-bit mantissa, shift) of 1/√value, by Newton's iteration in Q3.28."""
    if value == 1:
        return (1 << 31) - 1, 0
    pairs = (31 - value.bit_length()) // 2 - 1
    quarter = rounding_divide_by_power(np.array(value << 2 * pairs >> 1), np.array(1))
    root = np.array(1 << 28)
    for _ in range(5):
        cubed = _high(_high(root, root), root) << 6
        root = (_high(np.array(3 << 27), root) - _high(quarter, cubed)) << 3
    mantissa = int(_high(root, np.array(1518500250)))
    return (mantissa << (pairs - 11), 0) if pairs > 11 else (mantissa, pairs - 11)


def _high(a: I64, b: I64) -> I64:
    """a · b / 2^31, ties up."""
    return (a * b + (1 << 30)) >> 31


def hard_swish_table(source: tuple[float, int], output: tuple[float, int]) -> I8:
    """table[x + 128] of HARD_SWISH, in 16-bit fixed point.

    x·128 steps, times scale / 128 over 3 / 32768, saturated, is relu6(x + 3) / 6 as Q0.15.
    """
    fine = np.float32(1 / 128) * np.float32(source[0])
    factor, places = _short(float(fine / np.float32(output[0])))
    gate_factor, gate_places = _short(float(fine / np.float32(3 / 32768)))
    raised = (np.arange(-128, 128) - source[1]) * 128
    gate = raised
    if gate_places > 0:
        gate = _saturate16(gate << (gate_places - 1))
    gate = _high16(gate, gate_factor, 1 << 14)
    if gate_places > 0:
        gate = _saturate16(gate << 1)
    if gate_places < 0:
        gate = rounding_divide_by_power(gate, np.array(-gate_places))
    gate = (gate + (1 << 15)) >> 1
    product = _high16(gate, _high16(raised, factor, 1 << 14), 0)
    steps = rounding_divide_by_power(product, np.array(-places))
    return finish(steps, output[1], *INT8)


def _short(real: float) -> Pair:
    """(15-bit mantissa, shift) of a positive number."""
    mantissa, shift = fixed_point(real)
    return min((mantissa + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturate16(value: I64) -> I64:
    return np.clip(value, -(1 << 15), (1 << 15) - 1)


def _high16(a: I64, b: I64 | int, nudge: int) -> I64:
    """High 16 bits of 2·a·b: rounded to nearest with a nudge, else truncated towards zero."""
    product = a * b
    total = product + np.where(product >= 0, nudge, 1 - nudge if nudge else 0)
    return np.where(total >= 0, total >> 15, -((-total) >> 15))
