"""Arithmetic that is wrong on purpose, for planted bugs: cut off instead of rounded, shifted back.

What comes in: values and parameter words, as `scaling` has them. What goes out: wrong integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.simulate import scaling
from accelsim.simulate.scaling import Rounding
from accelsim.spec.arithmetic import (
    ADD_MODES,
    FIXED_SHIFT_MAX,
    I64,
    MODES,
    TFLITE_ADD_SHIFT,
    saturate32,
    signed_shift,
    wrap32,
)


def _cut(scaled: Any) -> I64:
    return saturate32(np.trunc(np.nan_to_num(scaled.astype(np.float64))).astype(np.int64))


def _cut_product(value: Any, mantissa: Any, shift: Any) -> I64:
    """value·mantissa·2^(shift-31) towards zero, in int32."""
    product = value.astype(np.int64) * mantissa.astype(np.int64)
    return saturate32(np.sign(product) * (np.abs(product) >> (31 - signed_shift(shift))))


def _scale_cut(mode: int, value: Any, words: Any) -> I64:
    if MODES[mode] == "fp32":
        return _cut(value.astype(np.float32) * words[0].view(np.float32))
    return _cut_product(value, words[0], words[1])


def _add_cut(mode: int, a: Any, b: Any, words: Any, subtract: bool) -> I64:
    if ADD_MODES[mode] == "fp32":
        scales = words.view(np.float32)
        left, right = a.astype(np.float32) * scales[0], b.astype(np.float32) * scales[1]
        return _cut((left - right if subtract else left + right) * scales[2])
    if ADD_MODES[mode] == "fixed":
        unshifted = np.stack([words[0], words[1], np.zeros_like(words[2])])
        total = scaling.add(mode, a, b, unshifted, subtract)
        whole: I64 = np.sign(total) * (np.abs(total) >> (words[2] & FIXED_SHIFT_MAX))
        return whole
    parts = [
        _cut_product(x.astype(np.int64) << TFLITE_ADD_SHIFT, words[i], words[3 + i])
        for i, x in enumerate((a, b))
    ]
    total = wrap32(parts[0] - parts[1] if subtract else parts[0] + parts[1])
    return _cut_product(total, words[2], words[5])


def _scale_back(mode: int, value: Any, words: Any) -> Any:
    if MODES[mode] == "fp32":
        return scaling.scale(mode, value, words)
    return scaling.scale(mode, value, np.stack([words[0], -words[1]]))


CUT = Rounding(_scale_cut, _add_cut)
SHIFTED = Rounding(_scale_back)
