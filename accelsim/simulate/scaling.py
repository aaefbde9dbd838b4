"""Scaling of int32 values by parameter words, in every mode, through the specified arithmetic.

What comes in: integers and rows of parameter words. What goes out: integers before the zero point
and the clamp, float32 in mode fp32 (exact after every clamp), int64 in the integer modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I32
from accelsim.spec import arithmetic

Scaled = NDArray[Any]


def scale_float(acc: I32, multiplier: NDArray[np.float32]) -> NDArray[np.float32]:
    """`arithmetic.scale_fp32` left in float32, where the zero point and both limits are exact."""
    x = acc.astype(np.float32)
    x *= multiplier
    return np.rint(x, out=x)


def add_float(
    a: NDArray[np.int16],
    b: NDArray[np.int16],
    a_scale: NDArray[np.float32],
    b_scale: NDArray[np.float32],
    inverse_scale: NDArray[np.float32],
    subtract: bool = False,
) -> NDArray[np.float32]:
    """`arithmetic.add_fp32` left in float32."""
    left = a.astype(np.float32)
    left *= a_scale
    right = b.astype(np.float32)
    right *= b_scale
    if subtract:
        left -= right
    else:
        left += right
    left *= inverse_scale
    return np.rint(left, out=left)


def scale(mode: int, value: I32, words: I32) -> Scaled:
    """value · multiplier in a mode of `arithmetic.MODES`; `words` are its rows but the bias."""
    name = arithmetic.MODES[mode]
    if name == "fp32":
        return scale_float(value, words[0].view(np.float32))
    return arithmetic.scale(name, value, words[0], words[1])


def add(
    mode: int, a: NDArray[np.int16], b: NDArray[np.int16], words: I32, subtract: bool
) -> Scaled:
    """a + b or a - b in a mode of `arithmetic.ADD_MODES`; `words` are all its rows."""
    name = arithmetic.ADD_MODES[mode]
    if name == "fp32":
        scales = words.view(np.float32)
        return add_float(a, b, scales[0], scales[1], scales[2], subtract)
    if name == "fixed":
        return arithmetic.add_fixed(a, b, words[0], words[1], words[2], subtract)
    return arithmetic.add_tflite(a, b, tuple(words), subtract)


@dataclass(frozen=True, slots=True)
class Rounding:
    """The scalings of the vector engine; a planted bug replaces them."""

    scale: Callable[[int, I32, I32], Scaled] = scale
    add: Callable[[int, NDArray[np.int16], NDArray[np.int16], I32, bool], Scaled] = add
