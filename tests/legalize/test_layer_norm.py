"""Layer normalization in integers is within its bound for every short row and for long ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from accelsim.legalize.operators.layer_norm import _epsilon, _parameters, distance
from accelsim.spec.normalization import layer_norm_steps

SCALES = (2.0**-20, 2.0**-7, 0.02, 0.11, 1.7, 2.0**4)
GAIN, OFFSET, STEP = 1.3, -0.4, 0.04  # of the output: 32 steps a deviation


def missed(rows: Any, scale: float, epsilon: float) -> tuple[float, float]:
    """Output steps between the integers and PyTorch's float64 kernel at most, and the bound."""
    scale32, count = np.float32(scale), rows.shape[-1]
    gain, offset = np.full(count, GAIN), np.full(count, OFFSET)
    words, parts = _parameters(gain / STEP, offset / STEP), _epsilon(epsilon, scale32, count)
    assert words is not None and parts is not None
    whole, shift, rest = parts
    made = layer_norm_steps(rows, *words, whole << shift)
    real = torch.nn.functional.layer_norm(
        torch.from_numpy(rows.astype(np.float64) * float(scale32)),
        (count,),
        torch.from_numpy(gain),
        torch.from_numpy(offset),
        epsilon,
    )
    bound = distance(count, words[2], GAIN / STEP, whole << shift, rest)
    return float(np.abs(made - real.numpy() / STEP).max()), bound


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 0.1])
@pytest.mark.parametrize("scale", SCALES)
def test_every_row_of_two_elements_is_within_the_bound(scale: float, epsilon: float) -> None:
    high, low = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    far, bound = missed(np.stack([high, low], -1).astype(np.int8), scale, epsilon)
    assert far <= bound


@pytest.mark.parametrize("scale", SCALES)
def test_rows_of_three_elements_on_a_grid_are_within_the_bound(scale: float) -> None:
    grid = np.unique(np.concatenate([np.arange(-128, 128, 7), np.arange(-3, 4), [127]]))
    far, bound = missed(np.stack(np.meshgrid(grid, grid, grid), -1).astype(np.int8), scale, 1e-5)
    assert far <= bound


LONG = [(n, s) for n in (8, 64, 768, 4096) for s in SCALES if (n, s) != (4096, 2.0**-20)]


@pytest.mark.parametrize(("length", "scale"), LONG)
def test_long_rows_are_within_the_bound(length: int, scale: float) -> None:
    rng = np.random.default_rng(length)
    rows = rng.integers(-128, 128, (30, length)).astype(np.int8)
    rows[::3] = rng.integers(-1, 2, (10, length))
    rows[1::3] = 5
    rows[1::3, 0] = 5 + np.arange(10)
    far, bound = missed(rows, scale, 1e-5)
    assert far <= bound


def test_an_epsilon_beyond_its_field_has_no_integers() -> None:
    assert _epsilon(1e-5, np.float32(2.0**-20), 4096) is None


def test_rows_with_some_variance_are_within_a_step_and_nearly_all_are_the_nearest() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(0, 20, (500, 64)).clip(-128, 127).astype(np.int8)
    far, _ = missed(rows, 0.05, 1e-5)
    assert far < 0.502
