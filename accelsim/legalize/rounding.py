"""The integer modes of requantization as tensor expressions: see `accelsim.spec.arithmetic`.

What comes in: int32 expressions of an accumulator, a mantissa and a shift. What goes out: the
scaled value as an int64 expression within int32. It must not know operators.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from accelsim.spec.arithmetic import INT32_MAX, INT32_MIN

Expression = Any


def scaled(mode: str, accumulator: Expression, mantissa: Expression, shift: Expression) -> Any:
    """accumulator · mantissa · 2^(shift-31), rounded as the mode says, saturated to int32."""
    wide = [value.astype("int64") for value in (accumulator, mantissa, shift)]
    return scaled_tflite(*wide) if mode == "tflite" else _scaled_once(mode, *wide)


def scaled_tflite(value: Expression, mantissa: Expression, shift: Expression) -> Any:
    """The doubling high multiply, then the rounding division by a power of two; all int64."""
    left, right = tirx.max(shift, _int64(0)), tirx.max(-shift, _int64(0))
    raised = saturated(value << left)
    product = raised * mantissa
    nudged = product + tirx.if_then_else(product >= 0, _int64(1 << 30), _int64(1 - (1 << 30)))
    # C++ division truncates towards zero.
    high = tirx.if_then_else(nudged >= 0, nudged >> 31, -((-nudged) >> 31))
    both = tirx.all(raised == _int64(INT32_MIN), mantissa == _int64(INT32_MIN))
    high = tirx.if_then_else(both, _int64(INT32_MAX), high)
    mask = (_int64(1) << right) - 1
    threshold = (mask >> 1) + (high < 0).astype("int64")
    return (high >> right) + ((high & mask) > threshold).astype("int64")


def saturated(value: Expression) -> Any:
    """An int64 expression limited to int32."""
    return tirx.max(tirx.min(value, _int64(INT32_MAX)), _int64(INT32_MIN))


def _scaled_once(mode: str, value: Expression, mantissa: Expression, shift: Expression) -> Any:
    """The exact product, rounded once."""
    product, right = value * mantissa, 31 - shift
    floor = product >> right
    rest = product - (floor << right)
    # Without places below the point there is no half; nothing then reaches this one.
    half = _int64(1) << tirx.max(right - 1, _int64(0))
    up = {
        "half_up": _int64(1),
        "half_even": floor & 1,
        "half_away": (floor >= 0).astype("int64"),
    }[mode]
    tie = (rest == half).astype("int64") * up
    return saturated(floor + (rest > half).astype("int64") + tie)


def _int64(value: int) -> Any:
    return tirx.const(value, "int64")
