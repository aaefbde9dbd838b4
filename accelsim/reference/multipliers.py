"""From the scales around a layer to the parameters of its requantization, framework by framework.

What comes in: float32 scales. What goes out: `Scaling`s. It must not know TVM, operators or how the
compiler derives the same.

    fp32, qnnpack  float32 (weight_scale · input_scale) · (1 / output_scale)
    onnxruntime    float32 (input_scale · weight_scale) / output_scale, as QLinearConv and
                   QLinearMatMul take it
    tflite         the quotient in double precision as a mantissa of 31 bits and a shift; its fully
                   connected layers multiply by the double itself and round once, half away from
                   zero
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import F32
from accelsim.reference.scaling import Scaling

F64 = NDArray[np.float64]
ROUNDINGS = ("fp32", "qnnpack", "tflite", "onnxruntime")
_ONE = np.float32(1)
ADD_SHIFT = 20  # places by which TFLite raises the operands of a sum


def quantize_multiplier(real: float) -> tuple[int, int]:
    """A positive number as (mantissa, shift): mantissa · 2^(shift - 31), mantissa in [2^30, 2^31).

    TFLite's QuantizeMultiplier: rounded half away from zero; below 2^-32 it is (0, 0).
    """
    fraction, shift = math.frexp(real)
    mantissa = math.floor(fraction * 2.0**31 + 0.5)
    if mantissa == 2**31:
        mantissa, shift = mantissa // 2, shift + 1
    return (0, 0) if shift < -31 else (mantissa, shift)


def fixed_point(real: F64 | float, mode: str = "tflite") -> Scaling:
    """TFLite's form of real multipliers, one or one a channel."""
    pairs = [quantize_multiplier(float(one)) for one in np.atleast_1d(real)]
    mantissas, shifts = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    return Scaling(mode, mantissas, shifts)


def product_scaling(
    rounding: str, source: np.float32, weight: F32, output: np.float32, connected: bool = False
) -> Scaling:
    """From sums of products with weights of scale `weight`, (channels,), to output steps.

    `connected`: of a fully connected layer, which TFLite treats in its own way.
    """
    if rounding == "tflite":
        real = np.float64(source) * weight.astype(np.float64) / np.float64(output)
        return fixed_point(real, "half_away" if connected else "tflite")
    if rounding == "onnxruntime":
        return Scaling("fp32", np.asarray((source * weight) / output, np.float32))
    return Scaling("fp32", np.asarray((weight * source) * (_ONE / output), np.float32))


def sum_scalings(
    a: np.float32, b: np.float32, output: np.float32
) -> tuple[Scaling, Scaling, Scaling]:
    """TFLite's ADD and SUB: of both operands, raised by ADD_SHIFT, and of their sum."""
    twice = 2.0 * max(float(a), float(b))
    of_sum = twice / float(np.float32(2**ADD_SHIFT) * output)
    return fixed_point(float(a) / twice), fixed_point(float(b) / twice), fixed_point(of_sum)


def mean_scaling(rounding: str, source: np.float32, output: np.float32, count: int) -> Scaling:
    """From the sum over `count` elements to output steps.

    TFLite's MEAN divides the mantissa by the count, rounded down, after raising it by as many
    places as the count has below its leading one.
    """
    if rounding != "tflite":
        return Scaling("fp32", np.array([source / (output * np.float32(count))], np.float32))
    mantissa, shift = quantize_multiplier(float(source) / float(output))
    places = min(count.bit_length() - 1, 32, 31 + shift)
    raised = (mantissa << places) // count
    return Scaling("tflite", np.array([raised], np.int32), np.array([shift - places], np.int32))


def quotient_scaling(source: np.float32, output: np.float32, single: bool) -> Scaling:
    """TFLite's change of scale: QUANTIZE divides in double precision, a ReLU in float32."""
    return fixed_point(float(source / output) if single else float(source) / float(output))
