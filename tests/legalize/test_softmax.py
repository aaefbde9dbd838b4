"""Softmax in integers: near the real one for every row, and LiteRT's kernel bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accelsim.legalize.exponential import exponentials
from accelsim.peers.litert_model import TfliteTensor, tflite_model, tflite_outputs
from accelsim.spec.normalization import softmax

SCALES = (2.0**-20, 2.0**-7, 0.02, 0.0625, 0.11, 0.3, 1.7, 2.0**4)


def table_of(scale: float) -> Any:
    table = exponentials(float(np.float32(scale)))
    assert table is not None
    return table


def farthest(rows: Any, scale: float) -> float:
    """Steps of 1/256 by which the integers miss the real softmax, which ends at 255 steps."""
    powers = np.exp(
        (rows - rows.max(axis=-1, keepdims=True).astype(np.float64)) * np.float32(scale)
    )
    real = np.minimum(powers / powers.sum(axis=-1, keepdims=True) * 256, 255) - 128
    return float(np.abs(softmax(rows, table_of(scale)) - real).max())


def bound(length: int) -> float:
    """As docs/normalization.md states it."""
    return 0.5 + length / 4096 + 1 / 1024


@pytest.mark.parametrize("scale", SCALES)
def test_every_row_of_two_elements_is_within_the_bound(scale: float) -> None:
    high, low = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    assert farthest(np.stack([high, low], -1).astype(np.int8), scale) <= bound(2)


@pytest.mark.parametrize("scale", SCALES)
def test_rows_of_three_elements_on_a_grid_are_within_the_bound(scale: float) -> None:
    grid = np.append(np.arange(-128, 128, 5), 127)
    rows = np.stack(np.meshgrid(grid, grid, grid), -1).astype(np.int8)
    assert farthest(rows, scale) <= bound(3)


@pytest.mark.parametrize("length", [5, 37, 256, 1000, 4096])
@pytest.mark.parametrize("scale", SCALES)
def test_long_rows_are_within_the_bound(length: int, scale: float) -> None:
    rng = np.random.default_rng(length)
    rows = rng.integers(-128, 128, (24, length)).astype(np.int8)
    rows[::3] = np.minimum(rows[::3], -100)
    rows[1::3] = rng.integers(-128, 128)  # all equal but one
    rows[:, 0] = 127 - 3 * np.arange(24)
    assert farthest(rows, scale) <= bound(length)


@pytest.mark.parametrize("scale", SCALES)
def test_rows_equal_the_kernel_of_litert(scale: float) -> None:
    rng = np.random.default_rng(7)
    rows = rng.integers(-128, 128, (64, 21)).astype(np.int8)
    rows[::2] = np.maximum(rows[::2], 90)
    model = tflite_model(
        "SOFTMAX",
        [TfliteTensor(rows.shape, (scale,), 3)],
        [TfliteTensor(rows.shape, (1 / 256,), -128)],
        "SoftmaxOptions",
        version=2,
        beta=1.0,
    )
    (golden,) = tflite_outputs(model, rows)
    np.testing.assert_array_equal(softmax(rows, table_of(scale)), golden)


def test_a_scale_that_tflite_refuses_has_no_table() -> None:
    assert exponentials(2.0**-26) is None
    assert exponentials(2.0**-25) is not None
