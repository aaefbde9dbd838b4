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


def _gelu_tanh(x: F32) -> F32:
    """The form with tanh; the cube is taken apart, as the kernel does."""
    one, slope = _ONE, np.float32(math.sqrt(2 / math.pi))
    inner = slope * x * (one + np.float32(0.044715) * x * x)
    return np.asarray(np.float32(0.5) * x * (one + _in_double(np.tanh)(inner)), np.float32)


def _elu(x: F32) -> F32:
    return np.where(x < 0, _in_double(np.expm1)(np.minimum(x, np.float32(0))), x)


def _log(x: F32) -> F32:
    """The kernel puts the least output where there is no logarithm."""
    above = np.where(x > 0, x, np.float32(1))
    return np.where(x > 0, _in_double(np.log)(above), np.float32(-np.inf))


FLOATS: Mapping[str, Callable[[F32], F32]] = {
    "sigmoid": _logistic,
    "tanh": _in_double(np.tanh),
    "exp": _in_double(np.exp),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "elu": _elu,
    "log": _log,
}
"""LOGISTIC, TANH, EXP, GELU, ELU and LOG, which fill a table in float32."""
TOTAL = frozenset({"log"})
"""What the kernel defines where the real function is not defined."""


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


def _root(x: I64, source: np.float32, output: np.float32) -> I64:
    """SQRT: in float32, cut to whole steps."""
    real = np.maximum(x, 0).astype(np.float32) * source
    steps: I64 = np.floor(np.sqrt(real) / output).astype(np.int64)
    return steps


def _inverse_root(x: I64, source: np.float32, output: np.float32) -> I64:
    """RSQRT: a mantissa and a shift of 1/√x, times 2^20, changed to the output's scale.

    Zero has the largest output; the kernel is not defined below.
    """
    words = [_inverse_root_words(int(value)) for value in np.maximum(x, 1)]
    mantissa, shift = (np.array(one, np.int64) for one in zip(*words, strict=True))
    fine = scale_tflite(np.ones_like(x), mantissa, shift + ROOT_PLACES)
    factor, places = fixed_point(float(1.0 / float(np.sqrt(source) * output)))
    factors, shifts = (np.array(word, np.int64) for word in (factor, places - ROOT_PLACES))
    return np.where(x > 0, scale_tflite(fine, factors, shifts), FAR)


def _inverse_root_words(value: int) -> tuple[int, int]:
    """1/√value of a whole number from 1 to 255, as mantissa · 2^(shift - 31).

    Five steps of Newton's iteration y ← y · (3 - value·y²) / 2 from y = 1, for the value times an
    even power of two, in numbers of 3 integer bits.
    """
    if value == 1:
        return (1 << 31) - 1, 0
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    half = ((value << 2 * pairs >> 1) + 1) >> 1
    root = 1 << 28
    for _ in range(5):
        cubed = min(_high32(_high32(root, root), root) << 6, (1 << 31) - 1)
        root = min((_high32(3 << 27, root) - _high32(half, cubed)) << 3, (1 << 31) - 1)
    mantissa, shift = _high32(root, HALF_ROOT_OF_TWO), 11 - pairs
    return (mantissa << -shift, 0) if shift < 0 else (mantissa, -shift)


def _high32(a: int, b: int) -> int:
    """a · b / 2^31, ties up."""
    return (a * b + (1 << 30)) >> 31


ROOT_PLACES = 20
HALF_ROOT_OF_TWO = 1518500250  # √½ · 2^31
FAR = 1 << 20  # steps: beyond every limit
FIXED_POINT: Mapping[str, Callable[..., I64 | None]] = {
    "leakyrelu": _leaky_relu,
    "abs": _absolute,
    "hard_swish": _hard_swish,
    "sqrt": _root,
    "rsqrt": _inverse_root,
}
"""Integer kernels: (values, input scale, output scale, attributes) → steps."""


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
