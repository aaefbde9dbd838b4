"""Random programs on all engines at once: RTL and simulator agree in every value and cycle."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.session import Cosim
from accelsim.programs.phases import random_launch
from accelsim.simulate.machine import Simulator
from accelsim.spec.config import CONFIGS

PROGRAMS = {"edge8": 40, "base16": 6, "wide32": 3}


@pytest.mark.rtl
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_programs_agree_in_values_records_and_cycles(name: str, seed: int) -> None:
    config = CONFIGS[name]
    rng = np.random.default_rng(seed)
    with Cosim(config) as rtl:
        for number in range(PROGRAMS[name]):
            launch = random_launch(rng, config)
            latency = int(rng.integers(2, 80))
            expected = Simulator(config, latency=latency).run(launch)
            rtl.memory = MemoryOptions(latency=latency)
            actual = rtl.launch(launch)
            assert actual.error_code == expected.error_code == 0
            assert len(actual.records) == len(launch.program.words) - 1
            for got, wanted in zip(actual.records, expected.records, strict=True):
                assert got == wanted, f"program {number} of seed {seed}, latency {latency}"
            assert actual.cycles == expected.cycles
            for base, contents in expected.dram.items():
                np.testing.assert_array_equal(actual.dram[base], contents)
            rtl.memory = random_stalls(seed=number)
            stalled = rtl.launch(launch)
            for base, contents in expected.dram.items():
                np.testing.assert_array_equal(stalled.dram[base], contents)
