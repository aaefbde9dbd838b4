"""Parameters at the end of sums and products, as the framework whose rounding counts has them.

What comes in: scales, zero points, biases and limits of a QDQ graph. What goes out: int32 biases,
clamp limits and `Requantize`s, or the reason why there is none. It must not know Relax.

    fp32, qnnpack  float32 throughout, see `legalize.qnnpack`
    onnxruntime    float32 (input_scale · weight_scale) / output_scale; biases and limits divided
    tflite         the quotient in double precision as a mantissa of 31 bits and a shift; fully
                   connected layers round once, half away from zero, all others twice
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import F32, I32, Requantize
from accelsim.legalize import qnnpack
from accelsim.legalize.rescale import fixed_point
from accelsim.spec.arithmetic import reciprocal

_INT32_MAX = np.iinfo(np.int32).max
_NO_BIAS = "its bias does not fit int32 at the scale of the accumulator"


def bias_steps(rounding: str, bias: F32, input_scale: np.float32, weight_scale: F32) -> I32 | str:
    """A float bias in steps of the accumulator, (out_channels,); a reason if not int32."""
    if rounding not in ("tflite", "onnxruntime"):
        return qnnpack.integer_bias(bias, input_scale, weight_scale)
    steps = np.rint(bias.astype(np.float64) / (np.float64(input_scale) * weight_scale))
    fits = np.isfinite(steps).all() and (np.abs(steps) <= _INT32_MAX).all()
    return steps.astype(np.int32) if fits else _NO_BIAS


def product_end(
    rounding: str,
    input_scale: np.float32,
    weight_scale: F32,
    output_scale: np.float32,
    end: Requantize,
    *,
    connected: bool = False,
) -> Requantize | str:
    """`end` with the scaling of products, one a weight scale; `connected` of a linear layer."""
    if rounding == "tflite":
        real = np.float64(input_scale) * weight_scale.astype(np.float64) / np.float64(output_scale)
        return _fixed(real, end, "half_away" if connected else "tflite")
    if rounding == "onnxruntime":
        product = np.float32(input_scale) * weight_scale.astype(np.float32)
        return _floats(np.asarray(product / np.float32(output_scale), np.float32), end)
    return _floats(qnnpack.convolution_multiplier(input_scale, weight_scale, output_scale), end)


def mean_end(
    rounding: str, input_scale: np.float32, output_scale: np.float32, count: int, end: Requantize
) -> Requantize | str:
    """`end` with the scaling of a sum over `count` elements to their mean, one multiplier.

    TFLite's MEAN divides the mantissa of the quotient by the count and drops the remainder, having
    raised it by the places that the count has below its leading one.
    """
    if count * 255 > _INT32_MAX:
        return f"the int32 sum of {count} elements may overflow"
    if rounding != "tflite":
        multiplier = qnnpack.average_multiplier(input_scale, output_scale, count)
        return _floats(np.array([multiplier], np.float32), end)
    mantissa, shift = fixed_point(float(input_scale) / float(output_scale))
    places = min(int(math.log2(count)), 32, 31 + shift)
    divided = (mantissa << places) // count
    if divided == 0:
        return "its multiplier is below 2^-32"
    return _words([divided], [shift - places], end, "tflite")


def sum_end(
    rounding: str, input_scale: np.float32, output_scale: np.float32, count: int, end: Requantize
) -> Requantize | str:
    """`end` with the scaling of a sum over `count` elements that stays a sum."""
    if count * 255 > _INT32_MAX:
        return f"the int32 sum of {count} elements may overflow"
    one = np.ones(1, np.float32)
    return product_end(rounding, input_scale, one, output_scale, end)


def count_end(count: int, end: Requantize) -> Requantize | str:
    """`end` with the division of a sum of integers by their number, half away from zero."""
    if count * 255 >= 1 << 29:
        return f"the sum of {count} elements is divided exactly only below 2^29"
    mantissa, shift = reciprocal(count)
    return _words([mantissa], [shift], end, "half_away")


def clamp_limits(
    rounding: str,
    scale: np.float32,
    zero_point: int,
    limits: tuple[int, int],
    low: float,
    high: float,
) -> tuple[int, int]:
    """The integer limits of quantize(clip(x, low, high)), within the quantized `limits`.

    TFLite and ONNX Runtime round a limit before they add the zero point: TFLite half away from
    zero, ONNX Runtime half to even.
    """
    if rounding not in ("tflite", "onnxruntime"):
        return qnnpack.clamp_limits(scale, zero_point, limits, low, high)

    def level(bound: float) -> int:
        steps = float(np.float32(bound) / np.float32(scale))
        if rounding == "tflite":
            steps = math.copysign(math.floor(abs(steps) + 0.5), steps)
        return int(np.clip(np.rint(steps) + zero_point, limits[0], limits[1]))

    lowest = limits[0] if math.isinf(low) else level(low)
    return lowest, limits[1] if math.isinf(high) else level(high)


def _floats(multiplier: F32, end: Requantize) -> Requantize | str:
    reason = qnnpack.reason_multiplier_unusable(multiplier)
    return reason or replace(end, multiplier=multiplier, mode="fp32", shift=None)


def _fixed(real: NDArray[np.float64], end: Requantize, mode: str) -> Requantize | str:
    """Multipliers in fixed point. TFLite takes 0 for one below 2^-32, as of a dead channel."""
    pairs = [fixed_point(float(one)) for one in real]
    if any(mantissa == 0 and one >= 1 for (mantissa, _), one in zip(pairs, real, strict=True)):
        return "a multiplier exceeds 2^31"
    return _words([mantissa for mantissa, _ in pairs], [shift for _, shift in pairs], end, mode)


def _words(mantissas: list[int], shifts: list[int], end: Requantize, mode: str) -> Requantize:
    words = np.array(mantissas, np.int32), np.array(shifts, np.int32)
    return replace(end, multiplier=words[0], mode=mode, shift=words[1])
