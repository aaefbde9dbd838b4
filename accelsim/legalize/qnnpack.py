"""How PyTorch's qnnpack engine derives its integer parameters, in float32 throughout.

What comes in: scales, zero points, float biases and limits of a QDQ graph. What goes out: int32
biases, float32 multipliers and clamp limits. It must not know Relax or the form of an operator.

Every product and quotient below is rounded to float32 where it stands: another order of the same
operations gives other multipliers in the last bit, and now and then another output.
"""

from __future__ import annotations

import math

import numpy as np

from accelsim.artifacts import F32, I8, I32, FixedAdd
from accelsim.spec.arithmetic import MULTIPLIER_MAX, MULTIPLIER_MIN, legal_multiplier

_INT32 = np.iinfo(np.int32)
_NEIGHBOURS = 16
# Ratios of an addend's scale to the sum's with which qnnpack creates an addition, and the least
# that the larger one may be: below, its shift exceeds 31 and its kernel gives meaningless results.
_SMALLEST_RATIO, _LARGEST_RATIO, _LARGER_RATIO = 2.0**-14, 2.0**8, 2.0**-10
_FRACTION_BITS = 21


def integer_bias(bias: F32, input_scale: np.float32, weight_scale: F32) -> I32 | str:
    """rint(bias · (1 / (weight_scale · input_scale))), (out_channels,); a reason if not int32.

    The scale is a product of doubles rounded once to float32, as `quantize_per_tensor` takes it.
    """
    scale = (weight_scale.astype(np.float64) * np.float64(input_scale)).astype(np.float32)
    value = np.rint(bias.astype(np.float32) * (np.float32(1.0) / scale))
    if not np.isfinite(value).all() or (np.abs(value.astype(np.float64)) > _INT32.max).any():
        return "its bias does not fit int32 at the scale of the accumulator"
    return value.astype(np.int32)


def convolution_multiplier(
    input_scale: np.float32, weight_scale: F32, output_scale: np.float32
) -> F32:
    """(weight_scale · input_scale) · (1 / output_scale), (out_channels,) float32."""
    product = weight_scale.astype(np.float32) * np.float32(input_scale)
    return np.asarray(product * (np.float32(1.0) / np.float32(output_scale)), dtype=np.float32)


def average_multiplier(input_scale: np.float32, output_scale: np.float32, count: int) -> np.float32:
    """input_scale / (output_scale · count): of a sum over `count` elements."""
    return np.float32(np.float32(input_scale) / (np.float32(output_scale) * np.float32(count)))


def fixed_add(
    a_scale: np.float32, b_scale: np.float32, output_scale: np.float32
) -> FixedAdd | None:
    """Integer multipliers and shift of a sum, or None where qnnpack's kernel is not defined.

    The larger multiplier has 22 bits. Scaling by a power of two is exact, so each ratio is
    rounded twice in all: to float32, then half to even to an integer.
    """
    ratios = [np.float32(scale) / np.float32(output_scale) for scale in (a_scale, b_scale)]
    larger = max(ratios)
    in_range = all(_SMALLEST_RATIO <= ratio < _LARGEST_RATIO for ratio in ratios)
    if not in_range or larger < _LARGER_RATIO:
        return None
    shift = _FRACTION_BITS - math.floor(math.log2(larger))
    a, b = (round(math.ldexp(float(ratio), shift)) for ratio in ratios)
    return FixedAdd(a, b, shift)


def requantize_multiplier(
    input_scale: np.float32,
    input_zero_point: int,
    output_scale: np.float32,
    *,
    divides: bool = False,
) -> np.float32 | None:
    """One multiplier that gives quantize(dequantize(x)) for all 256 int8 values x, or None.

    PyTorch rounds twice: ((x - zero_point) · input_scale) · (1 / output_scale); with `divides`, as
    ONNX has it, the product is divided by the scale. One multiplier near the quotient of the
    scales nearly always rounds all values to the same integers.
    """
    centred = np.arange(-128, 128).astype(np.float32) - np.float32(input_zero_point)
    inverse = np.float32(1.0) / np.float32(output_scale)
    product = centred * np.float32(input_scale)
    expected = np.rint(product / np.float32(output_scale) if divides else product * inverse)
    above = below = np.float32(input_scale) * inverse
    for _ in range(_NEIGHBOURS):
        for candidate in (above, below):
            if np.array_equal(np.rint(centred * candidate), expected):
                return candidate
        above = np.nextafter(above, np.float32(np.inf))
        below = np.nextafter(below, np.float32(0.0))
    return None


def clamp_limits(
    scale: np.float32, zero_point: int, limits: tuple[int, int], low: float, high: float
) -> tuple[int, int]:
    """The integer limits of quantize(clip(x, low, high)), within the quantized `limits`.

    Quantization is monotone, so clipping before it and clamping after it are the same. PyTorch's
    clamp adds the zero point before it rounds: of a tie, its parity decides.
    """

    def level(bound: float) -> int:
        scaled = np.float32(bound) * (np.float32(1.0) / np.float32(scale))
        return int(np.clip(np.rint(np.float32(zero_point) + scaled), limits[0], limits[1]))

    lowest = limits[0] if math.isinf(low) else level(low)
    highest = limits[1] if math.isinf(high) else level(high)
    return lowest, highest


def reason_multiplier_unusable(multiplier: F32) -> str | None:
    """Why these multipliers cannot run on the NPU, or None."""
    if not np.isfinite(multiplier).all() or (multiplier <= 0).any():
        return "a multiplier is not a positive number"
    if not legal_multiplier(multiplier):
        return f"a multiplier is outside {MULTIPLIER_MIN:g} to {MULTIPLIER_MAX:g}"
    return None


def reason_accumulator_overflows(
    weight: I8, weight_zero_point: int, bias: I32, input_zero_point: int
) -> str | None:
    """Why int32 accumulators may overflow, or None where |bias| + Σ|w - zw|·max|x - za| < 2^31."""
    largest = max(127 - input_zero_point, input_zero_point + 128)
    terms = np.abs(weight.astype(np.int64) - weight_zero_point).reshape(weight.shape[0], -1)
    bound = np.abs(bias.astype(np.int64)) + terms.sum(axis=1) * largest
    channel = int(bound.argmax())
    if bound[channel] < 2**31:
        return None
    return f"the int32 accumulator of channel {channel} may reach {int(bound[channel])}"
