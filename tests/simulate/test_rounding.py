"""Every int8 product, every shift, and multipliers beside powers of two equal exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.programs.products import RESULTS, VALUES, products, words_beside_powers
from accelsim.simulate import Simulator, scaling
from accelsim.spec.arithmetic import MODES
from accelsim.spec.config import CONFIGS
from tests.simulate import oracle_arithmetic as exact

ELEMENTS = np.arange(-128, 128)


@pytest.mark.parametrize("config", [CONFIGS["edge8"], CONFIGS["base16"]], ids=str)
@pytest.mark.parametrize("mode", range(len(MODES)), ids=MODES)
def test_all_products_of_two_elements_are_scaled_exactly(config, mode, seed):
    rows = words_beside_powers(np.random.default_rng([seed, mode]), config, mode)
    result = Simulator(config).run(products(config, mode, rows))
    assert result.error_code == 0
    actual = result.dram[RESULTS].view(np.int8).reshape(VALUES, VALUES, config.lanes)
    product = np.multiply.outer(ELEMENTS, ELEMENTS)
    distinct, places = np.unique(product, return_inverse=True)
    for lane in range(config.lanes):
        bias, *words = (int(word) for word in rows[:, lane])
        expected = [exact.scaled(mode, int(x) + bias, words) for x in distinct]
        limited = np.clip(expected, -128, 127).astype(np.int8)
        np.testing.assert_array_equal(actual[..., lane], limited[places].reshape(product.shape))
        assert len(np.unique(limited)) > 16


@pytest.mark.parametrize("mode", range(1, len(MODES)), ids=MODES[1:])
def test_every_shift_scales_exactly_beside_powers_of_two(mode, seed):
    rng = np.random.default_rng([seed, mode])
    beside = sorted({s * (1 << k) + u for k in range(32) for u in (-1, 0, 1) for s in (-1, 1)})
    words = [x for x in beside if -(1 << 31) <= x < 1 << 31]
    for shift in range(-32, 32):
        values = rng.choice(words, 4)
        above = int(rng.integers(1 << 26)) << 6  # bits that do not count
        shifts = np.full(len(words), above | shift & 63).astype(np.uint32).view(np.int32)
        rows = np.stack([np.array(words, np.int32), shifts])
        actual = scaling.scale(mode, values[:, None].astype(np.int32), rows[:, None])
        expected = [[exact.scaled(mode, int(x), [w, shift]) for w in words] for x in values]
        np.testing.assert_array_equal(actual, expected, f"shift {shift}")
