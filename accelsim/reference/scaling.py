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


MODES: Mapping[str, Callable[..., Any]] = {"fp32": _fp32}
