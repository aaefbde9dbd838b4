"""Trials: launches with all that the RTL must do with them, which is what bugs are held against.

What comes in: a configuration, a seed and counts. What goes out: `Trial`s, the deadliest first.
Expectations come from the simulator; trials without digests have races and undefined rows, so that
cycles, errors and tokens alone are compared there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from accelsim.artifacts import Launch, RunResult
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.session import Cosim
from accelsim.programs.broken import KINDS, broken
from accelsim.programs.building import chain, launch
from accelsim.programs.phases import random_launch
from accelsim.programs.streams import overlapping, regions, serial
from accelsim.simulate import Simulator
from accelsim.spec.config import ENGINES, STORE, Config

# A mutant that hangs is stopped by the watchdog after this many times the cycles it should take.
SLACK = 4
SLACK_CYCLES = 5_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One launch, its memory and what to expect."""

    name: str
    launch: Launch
    expected: RunResult
    memory: MemoryOptions
    values: bool = True  # digests and DRAM, not only cycles, errors and tokens
    cycles: bool = True  # false behind a memory that stalls at random
    abandon_after: int | None = None  # cycles after which a first run meets a soft reset

    def run(self, cosim: Cosim) -> str:
        """What is wrong, in a few words; empty where all is as expected."""
        cosim.memory = self.memory
        if self.abandon_after is not None:
            left = cosim.abandon(self.launch, self.abandon_after)
            if any(left.values()):
                return f"registers after a soft reset: {left}"
        return self._wrong(cosim.launch(self.launch))

    def _wrong(self, got: RunResult) -> str:
        wanted = self.expected
        for name in ("error_code", "error_index", "error_engine", "semaphores"):
            if getattr(got, name) != getattr(wanted, name):
                return f"{name} is {getattr(got, name)}, expected {getattr(wanted, name)}"
        if len(got.records) != len(wanted.records):
            return f"{len(got.records)} instructions retired, expected {len(wanted.records)}"
        for one, other in zip(got.records, wanted.records, strict=True):
            one = one if self.values else replace(one, digest=0)
            if not self.cycles:
                one = replace(one, start_cycle=other.start_cycle, end_cycle=other.end_cycle)
            if one != other:
                return f"{one}, expected {other}"
        if self.cycles and got.cycles != wanted.cycles:
            return f"{got.cycles} cycles, expected {wanted.cycles}"
        for base, data in wanted.dram.items() if self.values else ():
            if data.size and not np.array_equal(got.dram[base], data):
                return f"memory behind base register {base} differs"
        return ""


def trials(config: Config, seed: int, scale: int = 1) -> list[Trial]:
    """All trials of a configuration; `scale` multiplies how many random programs there are."""
    return [
        *_phases(config, seed, 2 * scale),
        *_serial(config, seed, 6 * scale),
        *_broken(config, seed, 40 * scale),
        *_whole(config, seed),
    ]


def _trial(
    name: str,
    config: Config,
    given: Launch,
    memory: MemoryOptions,
    *,
    values: bool = True,
    simulator: Simulator | None = None,
) -> Trial:
    simulator = simulator or Simulator(config, latency=memory.latency)
    expected = simulator.run(given)
    limit = min(given.cycle_limit, SLACK * expected.cycles + SLACK_CYCLES)
    return Trial(name, replace(given, cycle_limit=limit), expected, memory, values)


def _phases(config: Config, seed: int, count: int) -> Iterator[Trial]:
    """Four engines at once, free of races."""
    rng = np.random.default_rng([seed, 0])
    for number in range(count):
        memory = MemoryOptions(latency=int(rng.integers(2, 80)))
        given = random_launch(rng, config)
        trial = _trial(f"four engines {number}", config, given, memory)
        yield trial
        stalls = random_stalls(seed=number + 1)
        yield replace(trial, name=f"stalled memory {number}", memory=stalls, cycles=False)


def _serial(config: Config, seed: int, count: int) -> Iterator[Trial]:
    """One instruction after another, over memory that is defined everywhere."""
    for number in range(count):
        rng = np.random.default_rng([seed, 1, number])
        steps = serial(rng, config, 40)
        given = launch(config, steps, dram=regions(number, config.lanes))
        memory = MemoryOptions(latency=int(rng.choice([2, 32, 100])))
        yield _trial(f"serial {number}", config, given, memory)


def _broken(config: Config, seed: int, count: int) -> Iterator[Trial]:
    """Engines that overlap freely, in programs with errors of every kind."""
    for number in range(count):
        rng = np.random.default_rng([seed, 2, number])
        steps = overlapping(rng, config, int(rng.integers(1, 40)))
        kind = KINDS[number % len(KINDS)]
        given, memory, faults = broken(rng, launch(config, steps, seed=number), kind)
        simulator = Simulator(
            config, latency=memory.latency, checks=False, values=False, bus_faults=faults
        )
        name = f"{kind} {number}"
        yield _trial(name, config, given, memory, values=False, simulator=simulator)


def _whole(config: Config, seed: int) -> Iterator[Trial]:
    """What a program is refused for as a whole, and soft resets in the middle of one."""
    given = launch(config, chain(config), seed)
    memory = MemoryOptions()
    program = given.program
    wrong = {
        "contract hash": replace(program, contract_hash=program.contract_hash ^ 1),
        "high contract hash": replace(program, contract_hash=program.contract_hash ^ 1 << 63),
        "opcode mask": replace(program, opcode_mask=program.opcode_mask ^ 1),
        "nothing": replace(program, words=program.words[:0]),
    }
    simulator = Simulator(config, checks=False)
    for name, other in wrong.items():
        yield _trial(name, config, replace(given, program=other), memory, simulator=simulator)
    presets = [0] * len(ENGINES) ** 2
    presets[STORE * len(ENGINES)] = 3  # left over: a whole program may not do that
    loose = replace(given, semaphores=tuple(presets))
    yield _trial("presets", config, loose, memory, simulator=simulator)
    base = _trial("soft reset", config, given, memory, simulator=simulator)
    for wait in (0, 1, 20, 45, 60, 75, 90, 140, 200, 400):
        yield replace(base, name=f"soft reset after {wait}", abandon_after=wait)
