"""All products of two int8 elements, scaled in every mode: RTL and simulator agree in every one."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.cosim.session import Cosim
from accelsim.programs.products import RESULTS, products, words_beside_powers
from accelsim.simulate import Simulator
from accelsim.spec.arithmetic import MODES
from accelsim.spec.config import CONFIGS


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_all_products_of_two_elements_agree_in_every_mode(config, seed):
    with Cosim(config) as rtl:
        for mode, name in enumerate(MODES):
            rows = words_beside_powers(np.random.default_rng([seed, mode]), config, mode)
            given = products(config, mode, rows)
            expected, actual = Simulator(config).run(given), rtl.launch(given)
            assert actual.error_code == expected.error_code == 0
            assert actual.records == expected.records, name
            np.testing.assert_array_equal(actual.dram[RESULTS], expected.dram[RESULTS], name)
