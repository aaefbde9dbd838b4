"""From an accumulator to output steps: the modes of requantization in TVM's tensor expressions.

What comes in: int32 expressions and parameters. What goes out: expressions of whole output steps,
float32 in mode `fp32` and int64 in the others, before zero point and clamp. It must not know
operators or the specification's arithmetic: each definition is written anew.

    fp32       int32 → float32 · float32 multiplier, rounded to an integer, half to even each time
    tflite     shifted left and saturated, high half of twice the product with a mantissa, ties away
               from zero, divided by a power of two, ties away from zero
    half_up    the exact product with the mantissa divided once by 2^(31 - shift), ties towards +∞
    half_even  the same, ties to even
    half_away  the same, ties away from zero
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te

from accelsim.artifacts import F32, I32


@dataclass(frozen=True, slots=True)
class Scaling:
    """Parameters of a mode, one a channel or one for all.

    The multiplier is float32 in mode `fp32`; else it is the int32 mantissa m of m·2^(shift-31).
    """

    mode: str
    multiplier: F32 | I32
    shift: I32 | None = None

    @staticmethod
    def names(mode: str) -> tuple[str, ...]:
        """Names of the parameters of a mode, as `values` has them."""
        return ("multiplier",) if mode == "fp32" else ("multiplier", "shift")

    def values(self) -> dict[str, np.ndarray]:
        """Parameters of a kernel by name."""
        values: dict[str, np.ndarray] = {"multiplier": self.multiplier}
        return values if self.shift is None else {**values, "shift": self.shift}


def _fp32(total: Any, multiplier: Any) -> Any:
    """Nothing here adds floats, so nothing can be fused into the multiplication."""
    return te.nearbyint(total.astype("float32") * multiplier)


def _tflite(total: Any, mantissa: Any, shift: Any) -> Any:
    """A left shift comes first and saturates. The rounded high half is half up of a·m / 2^31."""
    total, mantissa, shift = _wide(total, mantissa, shift)
    zero = te.const(0, "int64")
    raised = _saturated(total << te.max(shift, zero))
    high = _saturated((raised * mantissa + (1 << 30)) >> 31)
    return _away(high, te.max(-shift, zero))


def _half_up(total: Any, mantissa: Any, shift: Any) -> Any:
    product, places = _product(total, mantissa, shift)
    return _saturated(_up(product, places))


def _half_even(total: Any, mantissa: Any, shift: Any) -> Any:
    """Half up, and one less where that made a tie odd."""
    product, places = _product(total, mantissa, shift)
    steps = _up(product, places)
    one = te.const(1, "int64")
    tie = te.all(places > 0, (product - ((product >> places) << places)) == _half(places))
    return _saturated(steps - te.if_then_else(tie, steps & one, te.const(0, "int64")))


def _half_away(total: Any, mantissa: Any, shift: Any) -> Any:
    return _saturated(_away(*_product(total, mantissa, shift)))


def _wide(*values: Any) -> tuple[Any, ...]:
    return tuple(value.astype("int64") for value in values)


def _product(total: Any, mantissa: Any, shift: Any) -> tuple[Any, Any]:
    """The exact product and the power of two, 0 to 63, by which it is divided."""
    total, mantissa, shift = _wide(total, mantissa, shift)
    return total * mantissa, 31 - shift


def _half(places: Any) -> Any:
    return te.const(1, "int64") << te.max(places - 1, te.const(0, "int64"))


def _up(value: Any, places: Any) -> Any:
    """value / 2^places, ties up: one bit below the point is kept, so that nothing overflows."""
    finer = value >> te.max(places - 1, te.const(0, "int64"))
    return te.if_then_else(places > 0, (finer + 1) >> 1, value)


def _away(value: Any, places: Any) -> Any:
    """value / 2^places, ties away from zero."""
    return te.if_then_else(value < 0, -_up(-value, places), _up(value, places))


def _saturated(value: Any) -> Any:
    low, high = (te.const(limit, "int64") for limit in (-(2**31), 2**31 - 1))
    return te.max(te.min(value, high), low)


def divided(total: Any, count: Any) -> Any:
    """int32 / int32 count ≥ 1, ties away from zero."""
    magnitude = te.max(total, -total) + te.floordiv(count, te.const(2, "int32"))
    steps = te.floordiv(magnitude, count)
    return te.if_then_else(total < 0, -steps, steps)


MODES: Mapping[str, Callable[..., Any]] = {
    "fp32": _fp32,
    "tflite": _tflite,
    "half_up": _half_up,
    "half_even": _half_even,
    "half_away": _half_away,
}
