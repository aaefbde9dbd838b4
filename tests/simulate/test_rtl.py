"""Random programs: the RTL does what the simulator says, to the bit, the cycle and the error.

Expected values of the simulator come from oracles elsewhere in this folder; here two independent
implementations of one contract are held against each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from accelsim.cosim.memory import MemoryOptions
from accelsim.cosim.placement import random_skews
from accelsim.cosim.session import Cosim
from accelsim.cosim.setup import launch_placement
from accelsim.programs.broken import KINDS, broken
from accelsim.programs.building import launch
from accelsim.programs.streams import overlapping, regions, serial
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.registers import ErrorCode

pytestmark = [pytest.mark.rtl, pytest.mark.timeout(900)]  # the first test may build the model
NAMED = ("edge8", "base16")
SERIAL = {"edge8": 40, "base16": 8}
OVERLAPPING = {"edge8": 200, "base16": 40}


@pytest.fixture(scope="module", params=NAMED)
def rtl(request):
    with Cosim(CONFIGS[request.param]) as session:
        yield session


def outcome(result):
    return {
        "cycles": result.cycles,
        "error": (result.error_code, result.error_index, result.error_engine),
        "semaphores": result.semaphores,
        "records": result.records,
    }


def without_digests(result):
    return replace(result, records=tuple(replace(r, digest=0) for r in result.records))


def test_defined_programs_agree_in_values_digests_and_cycles(rtl, seed):
    config = rtl.config
    for number in range(SERIAL[config.name]):
        rng = np.random.default_rng([seed, number])
        steps = serial(rng, config, int(rng.integers(10, 60)))
        given = launch(config, steps, dram=regions(number, config.lanes))
        rtl.memory = MemoryOptions(latency=int(rng.choice([2, 32, 100])))
        rtl.skews = random_skews(number) if number % 2 else {}
        addresses = launch_placement(given, rtl.skews).addresses()
        simulator = Simulator(config, latency=rtl.memory.latency, base_addresses=addresses)
        expected, actual = simulator.run(given), rtl.launch(given)
        assert outcome(actual) == outcome(expected), f"seed {seed}, program {number}"
        for base, data in expected.dram.items():
            np.testing.assert_array_equal(actual.dram[base], data, f"base register {base}")


def test_overlapping_and_broken_programs_agree_in_cycles_and_errors(rtl, seed):
    config = rtl.config
    rtl.skews = {}  # faults lie at bus addresses
    codes: Counter[int] = Counter()
    for number in range(OVERLAPPING[config.name]):
        rng = np.random.default_rng([seed, 1000 + number])
        steps = overlapping(rng, config, int(rng.integers(1, 40)))
        kind = KINDS[number % len(KINDS)]
        given, memory, faults = broken(rng, launch(config, steps, seed=number), kind)
        rtl.memory = memory
        simulator = Simulator(
            config, latency=memory.latency, checks=False, values=False, bus_faults=faults
        )
        expected, actual = simulator.run(given), rtl.launch(given)
        codes[expected.error_code] += 1
        assert outcome(without_digests(actual)) == outcome(expected), f"{kind}, program {number}"
    assert codes[ErrorCode.NONE] and codes[ErrorCode.NO_END]
    if config.name == "edge8":
        silent = {ErrorCode.CONTRACT, ErrorCode.BANK, ErrorCode.OPCODE}
        assert set(ErrorCode) - silent <= set(codes)
