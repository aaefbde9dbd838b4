"""The int8 arithmetic of TFLite's elementwise kernels, for all 256 values of an input.

What comes in: values less their zero point, scales. What goes out: output steps before the zero
point is added, or float32 results that the kernel then rounds. It must not know Relax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelsim.artifacts import F32
from accelsim.legalize.rescale import fixed_point
from accelsim.spec.arithmetic import I64, rounding_divide_by_power, scale_tflite

_ONE = np.float32(1)


def _in_double(function: Callable[[Any], Any]) -> Callable[[F32], F32]:
    """The C library's float32 functions are correctly rounded but for rare last bits."""
    return lambda x: np.asarray(function(x.astype(np.float64)), np.float32)


def _logistic(x: F32) -> F32:
    return np.asarray(_ONE / (_ONE + _in_double(np.exp)(-x)), np.float32)


def _gelu(x: F32) -> F32:
    share = [math.erfc(float(value)) for value in x * np.float32(-math.sqrt(0.5))]
    return np.float32(0.5) * x * np.array(share, np.float32)


def _elu(x: F32) -> F32:
    return np.where(x < 0, _in_double(np.expm1)(np.minimum(x, np.float32(0))), x)


FLOATS: Mapping[str, Callable[[F32], F32]] = {
    "sigmoid": _logistic,
    "tanh": _in_double(np.tanh),
    "exp": _in_double(np.exp),
    "gelu": _gelu,
    "elu": _elu,
}
"""LOGISTIC, TANH, EXP, GELU and ELU, which fill a table in float32."""


def _leaky_relu(x: I64, source: np.float32, output: np.float32, alpha: float) -> I64 | None:
    """LEAKY_RELU: two changes of scale, one a sign."""
    falling = float(source * np.float32(alpha) / output)
    if falling < 0:
        return None
    return np.where(x >= 0, _scaled(x, float(source / output)), _scaled(x, falling))


def _absolute(x: I64, source: np.float32, output: np.float32) -> I64:
    """ABS: a change of scale where the scales differ."""
    return np.abs(x) if source == output else _scaled(np.abs(x), float(source / output))


def _hard_swish(x: I64, source: np.float32, output: np.float32) -> I64 | None:
    """HARD_SWISH in 16 bits: x·128 times relu6(x + 3) / 6, which is Q0.15.

    The gate is x·128 in steps of 3 / 32768, saturated, so that ±3 are the ends of 16 bits. The
    kernel is not defined for a product that grows (None).
    """
    fine = np.float32(1 / 128) * source
    factor, places = _short_multiplier(float(fine / output))
    gate_factor, gate_places = _short_multiplier(float(fine / np.float32(3 / 32768)))
    if places > 0:
        return None
    raised = x * 128
    gate = _saturated16(raised << max(gate_places - 1, 0))
    gate = _saturated16(_high16(gate, gate_factor) << (1 if gate_places > 0 else 0))
    gate = rounding_divide_by_power(gate, np.array(max(-gate_places, 0)))
    product = ((gate + (1 << 15)) >> 1) * _high16(raised, factor)
    high = np.where(product >= 0, product >> 15, -(-product >> 15))  # towards zero
    return rounding_divide_by_power(high, np.array(-places))


FIXED_POINT: Mapping[str, Callable[..., I64 | None]] = {
    "leakyrelu": _leaky_relu,
    "abs": _absolute,
    "hard_swish": _hard_swish,
}
"""LEAKY_RELU, ABS and HARD_SWISH: (values, input scale, output scale, attributes) → steps."""


def _scaled(value: I64, real: float) -> I64:
    mantissa, shift = (np.array(word, np.int64) for word in fixed_point(real))
    return scale_tflite(value, mantissa, shift)


def _short_multiplier(real: float) -> tuple[int, int]:
    """A mantissa of 15 bits, half up, and a shift."""
    mantissa, shift = fixed_point(real)
    return min((mantissa + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturated16(value: I64) -> I64:
    return np.clip(value, -(1 << 15), (1 << 15) - 1)


def _high16(value: I64, factor: int) -> I64:
    """value · factor / 2^15, ties up."""
    return (value * factor + (1 << 14)) >> 15
