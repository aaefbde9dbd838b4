"""Modes of requantization and multipliers of every framework, against their definitions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te

from accelsim.reference import multipliers
from accelsim.reference.scaling import MODES, divided
from accelsim.spec import arithmetic

INTEGER_MODES = ("tflite", "half_up", "half_even", "half_away")
INT32 = np.iinfo(np.int32)


def computed(body: Callable[..., Any], *columns: np.ndarray) -> np.ndarray:
    """An expression of scalars, computed by TVM for every row of int32 columns."""
    tensors = [te.placeholder((column.size,), "int32") for column in columns]
    result = te.compute(
        (columns[0].size,), lambda i: body(*(t[i] for t in tensors)).astype("int64")
    )
    run = tvm.compile(te.create_prim_func([*tensors, result]), tvm.target.Target("llvm"))
    output = tvm.runtime.tensor(np.zeros(columns[0].size, np.int64))
    run(*(tvm.runtime.tensor(np.ascontiguousarray(c, np.int32)) for c in columns), output)
    return np.asarray(output.numpy())


def rows(accumulators: np.ndarray, mantissas: np.ndarray, shifts: np.ndarray) -> list[np.ndarray]:
    """All combinations."""
    return [grid.ravel() for grid in np.meshgrid(accumulators, mantissas, shifts)]


def edges() -> list[np.ndarray]:
    """Accumulators and mantissas at powers of two and their neighbours, every shift."""
    powers = [(1 << bit) + off for bit in range(32) for off in (-1, 0, 1)]
    values = [sign * one for one in powers for sign in (-1, 1)]
    accumulators = np.unique(np.clip(values, INT32.min, INT32.max))
    mantissas = np.unique(np.clip([*powers, 3 << 29, 0x55555555], 0, INT32.max))
    return rows(accumulators, mantissas, np.arange(-32, 32))


def products() -> list[np.ndarray]:
    """Every product of two int8 values, with multipliers that make ties of them."""
    accumulators = np.unique(np.outer(np.arange(-255, 256), np.arange(-255, 256)))
    mantissas = np.array([1 << 30, (1 << 30) + 1, INT32.max, 3 << 29, 5 << 28])
    return rows(accumulators, mantissas, np.array([-16, -9, -4, -1, 0, 1, 3]))


def random(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    count = 300_000
    reach = 2.0 ** rng.uniform(0, 31, count)
    accumulators = (rng.uniform(-1, 1, count) * reach).astype(np.int64)
    return [accumulators, rng.integers(0, INT32.max, count), rng.integers(-32, 32, count)]


@pytest.mark.parametrize("mode", INTEGER_MODES)
def test_integer_mode_equals_the_specification(mode: str, seed: int) -> None:
    for accumulator, mantissa, shift in (edges(), products(), random(seed)):
        actual = computed(MODES[mode], accumulator, mantissa, shift)
        words = [column.astype(np.int32) for column in (accumulator, mantissa, shift)]
        golden = arithmetic.scale(mode, *words)
        np.testing.assert_array_equal(actual, golden)
        assert np.unique(golden).size > 1000


def test_half_modes_differ_on_ties_only() -> None:
    accumulator, mantissa, shift = products()
    results = {mode: computed(MODES[mode], accumulator, mantissa, shift) for mode in INTEGER_MODES}
    exact = accumulator.astype(np.float64) * mantissa * 2.0 ** (shift - 31.0)
    tie = exact - np.floor(exact) == 0.5
    for mode in ("half_even", "half_away"):
        different = results[mode] != results["half_up"]
        assert different.any() and np.all(tie[different])


def test_division_by_a_count_rounds_ties_away_from_zero() -> None:
    total, count = rows(np.arange(-3000, 3001), np.arange(1, 65), np.zeros(1, np.int64))[:2]
    golden = arithmetic.divide_half_away(total, count)
    np.testing.assert_array_equal(computed(divided, total, count), golden)


def test_quantized_multipliers_are_the_nearest_of_31_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for real in 2.0 ** rng.uniform(-31, 30, 2000):
        mantissa, shift = multipliers.quantize_multiplier(float(real))
        assert 1 << 30 <= mantissa < 1 << 31
        error = abs(Fraction(mantissa) * Fraction(2) ** (shift - 31) - Fraction(float(real)))
        assert error <= Fraction(2) ** (shift - 32)


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        (1.0, (1 << 30, 1)),
        (0.5, (1 << 30, 0)),
        (1 - 2.0**-33, (1 << 30, 1)),  # rounds up to 2^31, which is carried
        (1 - 2.0**-32, (1 << 30, 1)),
        (1 - 2.0**-31, (INT32.max, 0)),
        (2.0**-32, (1 << 30, -31)),
        (2.0**-33, (0, 0)),
        (2.0**-32 * (1 - 2.0**-40), (1 << 30, -31)),
    ],
)
def test_quantized_multipliers_at_their_ends(real: float, expected: tuple[int, int]) -> None:
    assert multipliers.quantize_multiplier(real) == expected


def test_frameworks_round_the_same_scales_in_their_own_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, output = (np.float32(2.0 ** rng.uniform(-8, -2)) for _ in range(2))
    weight = (2.0 ** rng.uniform(-9, -4, 500)).astype(np.float32)
    found = {
        rounding: multipliers.product_scaling(rounding, source, weight, output)
        for rounding in multipliers.ROUNDINGS
    }
    quotient = found["onnxruntime"].multiplier
    np.testing.assert_array_equal(quotient, (source * weight) / output)
    np.testing.assert_array_equal(found["fp32"].multiplier, found["qnnpack"].multiplier)
    assert np.any(quotient != found["fp32"].multiplier)
    np.testing.assert_allclose(quotient, found["fp32"].multiplier, rtol=2.0**-22)
    fixed = found["tflite"]
    assert fixed.shift is not None
    real = fixed.multiplier * 2.0 ** (fixed.shift - 31.0)
    exact = np.float64(source) * weight.astype(np.float64) / np.float64(output)
    np.testing.assert_allclose(real, exact, rtol=2.0**-31)
