"""Changes of scale: one multiplier from a tensor's levels to another's.

What comes in: two quantizations and whose integers are wanted. What goes out: a `Requantize`, or
the reason why there is none. It must not know Relax.

    fp32, qnnpack  rint(((q - z) · s) · (1/so)): one multiplier that gives all 256 results
    onnxruntime    rint(((q - z) · s) / so): likewise
    tflite         s / so in double precision as a mantissa of 31 bits and a shift, rounded twice
"""

from __future__ import annotations

import math

import numpy as np

from accelsim.artifacts import I8, Requantize
from accelsim.legalize.integer_op import Quantization
from accelsim.legalize.qnnpack import reason_multiplier_unusable, requantize_multiplier

FULL = (-128, 127)


def unchanged(source: Quantization, target: Quantization, limits: tuple[int, int] = FULL) -> bool:
    """Whether int8 values are the same in both, `limits` (int8 domain) cutting nothing."""
    return source.same_levels(target) and limits == FULL


def rescaling(
    source: Quantization,
    target: Quantization,
    rounding: str,
    limits: tuple[int, int],
    *,
    single: bool = False,
) -> Requantize | str:
    """The requantization of q - source's zero point, one multiplier; `limits` in int8.

    `single` rounds TFLite's quotient to float32 first, as its ReLUs do.
    """
    zero_point = target.int8_zero_point
    if source.same_levels(target):
        return Requantize(np.ones(1, np.float32), zero_point, *limits)
    if rounding == "tflite":
        quotient = source.scale / target.scale
        exact = float(source.scale) / float(target.scale)
        mantissa, shift = fixed_point(float(quotient) if single else exact)
        if mantissa == 0:
            return "its scale shrinks by more than 2^32"
        words = np.array([mantissa], np.int32), np.array([shift], np.int32)
        return Requantize(words[0], zero_point, *limits, mode="tflite", shift=words[1])
    divides = rounding == "onnxruntime"
    multiplier = requantize_multiplier(
        source.scale, source.int8_zero_point, target.scale, divides=divides
    )
    if multiplier is None:
        return "no single multiplier rounds as its two scales do"
    vector = np.array([multiplier], np.float32)
    reason = reason_multiplier_unusable(vector)
    return reason if reason is not None else Requantize(vector, zero_point, *limits)


def table_of(
    source: Quantization, target: Quantization, rounding: str, limits: tuple[int, int]
) -> I8:
    """What `rescaling` states, for all 256 values: the level of x is table[x + 128].

    Of rounding "tflite" it has only the case in which no multiplier is left: all zero points.
    """
    centred = np.arange(-128, 128).astype(np.float32) - np.float32(source.int8_zero_point)
    product = centred * source.scale
    if rounding == "onnxruntime":
        steps = np.rint(product / target.scale)
    else:
        steps = np.rint(product * (np.float32(1.0) / target.scale))
    if rounding == "tflite":
        steps = np.zeros_like(product)
    levels: I8 = np.clip(steps + target.int8_zero_point, *limits).astype(np.int8)
    return levels


def joined_table(source: Quantization, target: Quantization, limits: tuple[int, int]) -> I8:
    """The level of x is table[x + 128] where TFLite's CONCATENATION joins uint8 tensors.

    In float32 it multiplies stored values by s · (1 / so), subtracts the zero point so multiplied,
    and rounds half away from zero.
    """
    scale = source.scale * (np.float32(1.0) / target.scale)
    bias = np.float32(-source.zero_point) * scale
    stored = np.arange(-128, 128) + source.shift
    real = (stored.astype(np.float32) * scale + bias).astype(np.float64)
    steps = np.copysign(np.floor(np.abs(real) + 0.5), real)
    levels: I8 = np.clip(steps + target.int8_zero_point, *limits).astype(np.int8)
    return levels


def fixed_point(real: float) -> tuple[int, int]:
    """(mantissa, shift) of mantissa · 2^(shift - 31), the mantissa rounded half away from zero.

    Below 2^-32 it is (0, 0); the largest shift that the NPU has is 31.
    """
    fraction, shift = math.frexp(real)
    mantissa = math.floor(math.ldexp(fraction, 31) + 0.5)
    if mantissa == 1 << 31:
        mantissa, shift = mantissa >> 1, shift + 1
    return (0, 0) if not -31 <= shift <= 31 else (mantissa, shift)
