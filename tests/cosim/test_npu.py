"""Whole layers on the RTL: memory, records, digests and cycles as the simulator has them.

Values are held to independent oracles elsewhere; here the two backends are held to one another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from accelsim.artifacts import Launch, LayerOp, RunResult
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.placement import PAGE_BYTES, random_skews
from accelsim.cosim.session import Cosim
from accelsim.cosim.setup import launch_placement
from accelsim.emit.layout import launch_memory
from accelsim.emit.program import compile_region
from accelsim.simulate.machine import Simulator
from accelsim.spec.config import CONFIGS
from tests.schedule import layers

pytestmark = pytest.mark.rtl

EDGE8 = CONFIGS["edge8"]
SAME = (1, 1, 1, 1)


@pytest.fixture(scope="module")
def rtl() -> Iterator[Cosim]:
    with Cosim(EDGE8) as cosim:
        yield cosim


def cases() -> dict[str, tuple[tuple[int, int, int, int], LayerOp]]:
    rng = np.random.default_rng(11)
    return {
        "conv": ((1, 9, 9, 19), layers.conv(rng, 19, 26, padding=SAME)),
        "depthwise": ((1, 9, 7, 13), layers.conv(rng, 13, 13, depthwise=True, padding=SAME)),
        "linear": ((3, 1, 1, 40), layers.conv(rng, 40, 10, (1, 1))),
        "add": ((1, 7, 5, 20), layers.add(rng)),
        "maximum": ((1, 9, 9, 12), layers.pool("max", (3, 3), (2, 2), SAME)),
        "average": ((1, 5, 5, 12), layers.pool("sum", (5, 5), (1, 1))),
    }


def launch_of(name: str) -> Launch:
    shape, op = cases()[name]
    program = compile_region(layers.region(shape, op), EDGE8)
    rng = np.random.default_rng(5)
    inputs = {n: layers.random_input(rng, program.tensors[n].shape) for n in program.inputs}
    return Launch(program, launch_memory(program, inputs), cycle_limit=1_000_000)


def same_memory(actual: RunResult, expected: RunResult) -> None:
    assert actual.error_code == expected.error_code == 0
    assert actual.semaphores == expected.semaphores
    for base, contents in expected.dram.items():
        np.testing.assert_array_equal(actual.dram[base], contents)


@pytest.mark.parametrize("name", cases())
def test_layer_equals_the_simulator_in_records_and_cycles(name: str, rtl: Cosim) -> None:
    launch = launch_of(name)
    expected = Simulator(EDGE8, latency=rtl.memory.latency).run(launch)
    actual = rtl.launch(launch)
    same_memory(actual, expected)
    assert len(actual.records) == len(launch.program.words) - 1
    assert actual.records == expected.records
    assert actual.cycles == expected.cycles


@pytest.mark.parametrize("name", ["conv", "depthwise", "add"])
def test_random_stalls_change_only_cycles(name: str, rtl: Cosim) -> None:
    launch = launch_of(name)
    expected = Simulator(EDGE8).run(launch)
    rtl.memory = random_stalls(seed=9)
    actual = rtl.launch(launch)
    rtl.memory = MemoryOptions()
    same_memory(actual, expected)
    assert actual.cycles > expected.cycles

    def digests(result: RunResult) -> list[tuple[int, int, int]]:
        return [(r.engine, r.index, r.digest) for r in result.records]

    assert digests(actual) == digests(expected)


def test_observer_switched_off_leaves_no_records_and_the_same_cycles(rtl: Cosim) -> None:
    launch = launch_of("add")
    seen = rtl.launch(launch)
    blind = rtl.launch(Launch(launch.program, launch.dram, cycle_limit=1_000_000, observe=False))
    assert blind.records == () and len(seen.records) > 0
    assert blind.cycles == seen.cycles
    same_memory(blind, seen)


# Where the skews of a seed change how bursts are split, and so the cycles.
@pytest.mark.parametrize(
    ("name", "seed"), [("add", 1), ("add", 5), ("maximum", 1), ("maximum", 19)]
)
def test_bases_off_their_pages_change_cycles_as_the_simulator_says(
    name: str, seed: int, rtl: Cosim
) -> None:
    launch = launch_of(name)
    aligned = Simulator(EDGE8).run(launch)
    skews = random_skews(seed)
    addresses = launch_placement(launch, skews).addresses()
    assert all(address % PAGE_BYTES and not address % 64 for address in addresses.values())
    expected = Simulator(EDGE8, base_addresses=addresses).run(launch)
    rtl.skews = skews
    try:
        actual = rtl.launch(launch)
    finally:
        rtl.skews = {}
    same_memory(actual, expected)
    assert actual.records == expected.records
    assert actual.cycles == expected.cycles != aligned.cycles
