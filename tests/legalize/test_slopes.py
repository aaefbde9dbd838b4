"""Multipliers of TFLite's PRELU give its integers for every value, or there are none."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.legalize.frame import ConstantLeaf
from accelsim.legalize.integer_op import Quantization
from accelsim.legalize.slopes import NO_MULTIPLIER, slope_multipliers


def levels(scale: float, zero: int = 0) -> Quantization:
    return Quantization(np.float32(scale), zero, "int8", (-128, 127))


def tflite(values: np.ndarray, real: float) -> np.ndarray:
    """Products rounded to whole halves of the result, then to whole results, ties as gemmlowp's."""
    fraction, shift = np.frexp(real)
    mantissa = int(np.floor(fraction * 2.0**31 + 0.5))
    product = (values.astype(object) << max(int(shift), 0)) * mantissa * 2
    nudge = np.where(product >= 0, 1 << 31, 1 - (1 << 31)).astype(object)
    high = np.array(
        [
            int(p + n) // (1 << 32) if p + n >= 0 else -(int(-(p + n)) // (1 << 32))
            for p, n in zip(product, nudge, strict=True)
        ]
    )
    right = max(-int(shift), 0)
    steps = np.floor(np.abs(high) / 2.0**right + 0.5)
    result: np.ndarray = np.where(high < 0, -steps, steps).astype(int)
    return result


@pytest.mark.parametrize("zero", [-128, -20, 0, 60])
def test_every_value_of_both_sides_is_exact(zero: int) -> None:
    slopes = ConstantLeaf(np.array([3, -5, 0, 100], np.int8), levels(0.01, 7))
    found = slope_multipliers(levels(0.05, zero), levels(0.05), slopes, 4)
    assert not isinstance(found, str)
    above, below = found
    over, under = np.arange(1, 128 - zero), -np.arange(1, zero + 129)
    assert np.array_equal(np.rint(over.astype(np.float32) * above), tflite(over, 1.0))
    real = float(np.float32(0.05) * np.float32(0.01) / np.float32(0.05))
    for slope, one in zip((3, -5, 0, 100), below, strict=True):
        wanted = tflite(under * (slope - 7), real)
        assert np.array_equal(np.rint(under.astype(np.float32) * one), wanted)


def test_scales_whose_roundings_no_multiplier_has_are_refused() -> None:
    slopes = ConstantLeaf(np.array([100], np.int8), levels(0.01))
    assert slope_multipliers(levels(0.05), levels(0.11), slopes, 1) == NO_MULTIPLIER


def test_one_slope_serves_all_channels() -> None:
    slopes = ConstantLeaf(np.array([[[127]]], np.int8), levels(1 / 128))
    found = slope_multipliers(levels(0.05, 3), levels(0.05), slopes, 6)
    assert not isinstance(found, str) and found[1].shape == (6,) and len(set(found[1])) == 1
