"""Rounding modes written anew in int64, for the oracle."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Requantize


def scaled(acc: np.ndarray, r: Requantize) -> np.ndarray:
    """acc · multiplier as int64, before zero point and clamp; channels last."""
    total = acc.astype(np.int32).astype(np.int64)
    if r.mode == "fp32":
        return np.rint(total.astype(np.float32) * r.multiplier).astype(np.float64)
    assert r.shift is not None
    mantissa, shift = r.multiplier.astype(np.int64), r.shift.astype(np.int64)
    if r.mode == "tflite":
        return tflite(total, mantissa, shift)
    product, half = total * mantissa, np.int64(1) << (30 - shift)
    if r.mode == "half_up":
        return (product + half) // (2 * half)
    if r.mode == "half_away":
        return np.sign(product) * ((np.abs(product) + half) // (2 * half))
    floor = product // (2 * half)
    rest = product - floor * 2 * half
    return floor + ((rest > half) | ((rest == half) & (floor % 2 == 1)))


def tflite(value: np.ndarray, mantissa: np.ndarray | int, shift: np.ndarray | int) -> np.ndarray:
    """gemmlowp's doubling high multiply between a left and a rounding right shift."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    raised = np.clip(value.astype(np.int64) << left, -(1 << 31), (1 << 31) - 1)
    product = raised * np.asarray(mantissa, np.int64)
    # C's division truncates; the nudge makes it round, negative ties towards zero.
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = np.sign(nudged) * (np.abs(nudged) // (1 << 31))
    return np.sign(high) * ((np.abs(high) + ((1 << right) >> 1)) // (1 << right))
