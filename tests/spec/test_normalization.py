"""Softmax and layer normalization against real numbers, and their parts against exact integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accelsim.spec import normalization as n

RNG = np.random.default_rng(11)


def real_softmax(x: np.ndarray, scale: float) -> np.ndarray:
    """In output steps of 1/256, from -128."""
    powers = np.exp((x.astype(np.float64) - x.max(axis=-1, keepdims=True)) * scale)
    return powers / powers.sum(axis=-1, keepdims=True) * 256 - 128


@pytest.mark.parametrize("scale", [2.0**-20, 0.0047, 0.05, 0.3, 16.0])
def test_softmax_of_every_pair_is_within_a_step_of_the_real_one(scale: float) -> None:
    x, y = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    rows = np.stack([x.ravel(), y.ravel()], axis=-1).astype(np.int8)
    got = n.softmax(rows, n.softmax_table(scale)).astype(np.float64)
    expected = np.minimum(real_softmax(rows, scale), 127)
    assert np.abs(got - expected).max() < 0.51


@pytest.mark.parametrize("length", [1, 3, 10, 128, 1000, 4096])
def test_softmax_of_long_rows_is_within_a_step_of_the_real_one(length: int) -> None:
    rows = RNG.integers(-128, 128, (40, length)).astype(np.int8)
    rows[0] = 127
    for scale in (0.001, 0.04, 0.5):
        got = n.softmax(rows, n.softmax_table(scale)).astype(np.float64)
        expected = np.minimum(real_softmax(rows, scale), 127)
        assert np.abs(got - expected).max() < 0.52


def test_leading_zeros_are_those_of_a_32_bit_word() -> None:
    words = np.array([1 << k for k in range(32)] + [3, 0xFFFFFFFF, (1 << 20) + 77])
    assert n.leading_zeros(words).tolist() == [32 - int(w).bit_length() for w in words]


def test_a_variance_is_raised_to_47_or_48_bits() -> None:
    for bit in range(48):
        for value in {1 << bit, (1 << bit) + 1, (2 << bit) - 1}:
            raised, height = n.raise_variance(np.array([value]))
            assert raised[0] == value << 2 * int(height[0])
            assert raised[0].item().bit_length() in (47, 48)
    assert n.raise_variance(np.array([0]))[1].tolist() == [23]


@pytest.mark.parametrize("length", [1, 2, 3, 17, 768, 4096])
@pytest.mark.parametrize("gain_bits", [0, 16, 24])
def test_layer_norm_is_within_a_step_of_the_real_one(length: int, gain_bits: int) -> None:
    rows = RNG.integers(-128, 128, (30, length)).astype(np.int8)
    rows[0], rows[1] = 55, RNG.integers(0, 2, length)
    rows[2, : length // 2] = -128
    gain = RNG.integers(-(40 << gain_bits), (40 << gain_bits) + 1, length)
    offset = RNG.integers(-(20 << 16), 20 << 16, length)
    epsilon = max(1, length * length // 1000)
    got = n.layer_norm(rows, gain, offset, gain_bits, epsilon, (5, -128, 127))
    x = rows.astype(np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True) + epsilon / length**2
    real = centred / np.sqrt(variance) * gain / 2.0**gain_bits + offset / 65536 + 5
    assert np.abs(got - np.clip(real, -128, 127)).max() < 0.501


def test_equal_elements_without_epsilon_give_the_offset() -> None:
    rows = np.full((1, 6), 100, np.int8)
    offset = np.arange(6) << 16
    got = n.layer_norm(rows, np.full(6, 1 << 20), offset, 4, 0, (0, -128, 127))
    assert got.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_roots_are_exact() -> None:
    values = RNG.integers(1 << 46, 1 << 48, 1000)
    assert all(math.isqrt(int(v)) ** 2 <= v < (math.isqrt(int(v)) + 1) ** 2 for v in values)
