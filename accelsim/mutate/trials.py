"""Trials: launches with all that the RTL must do with them, which is what bugs are held against.

What comes in: a configuration, a seed and counts. What goes out: `Trial`s, the deadliest first.
Expectations come from the simulator; trials without digests have races and undefined rows, so that
cycles, errors and tokens alone are compared there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch, Program, RunResult
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.placement import place
from accelsim.cosim.session import Cosim
from accelsim.cosim.setup import launch_regions
from accelsim.mutate.register_trial import BusyTrial, RegisterTrial
from accelsim.programs.broken import KINDS, broken
from accelsim.programs.building import chain, launch
from accelsim.programs.extents import at_limits
from accelsim.programs.phases import random_launch
from accelsim.programs.row_ties import row_ties
from accelsim.programs.streams import corners, overlapping, regions, serial
from accelsim.programs.ties import ties
from accelsim.simulate import BusFault, Simulator
from accelsim.spec.config import ENGINES, LOAD, MATRIX, STORE, Config
from accelsim.spec.encoding import contract_hash
from accelsim.spec.isa import BY_NAME
from accelsim.spec.registers import SEMAPHORE_MAX, ErrorCode

# A mutant that hangs is stopped by the watchdog after this many times the cycles it should take.
SLACK = 4
SLACK_CYCLES = 5_000
DRAIN = BY_NAME["drain"].opcode
UNKNOWN = BY_NAME["conv"].opcode ^ 31  # makes a conv an instruction that does not exist


@dataclass(frozen=True, slots=True)
class Trial:
    """One launch, its memory and what to expect."""

    name: str
    launch: Launch
    expected: RunResult
    memory: MemoryOptions
    values: bool = True  # digests and DRAM, not only cycles, errors and tokens
    cycles: bool = True  # false behind a memory that stalls at random
    records: bool = True  # which instructions retired, and when
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
        if not self.records:
            return ""
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


class Check(Protocol):
    """Anything that can be held against a mutant."""

    @property
    def name(self) -> str:
        """What it is called in verdicts."""

    def run(self, cosim: Cosim) -> str:
        """What is wrong, in a few words; empty where all is as expected."""


def trials(config: Config, seed: int, scale: int = 1) -> list[Check]:
    """All trials of a configuration; `scale` multiplies how many random programs there are."""
    return [
        *_phases(config, seed, 2 * scale),
        *_serial(config, seed, 10 * scale),
        *_ties(config, seed, 6 * scale),
        *_row_ties(config, seed, 2 * scale),
        *_corners(config, seed, 5 * scale),
        *_broken(config, seed, 40 * scale),
        *_extents(config, seed),
        *_whole(config, seed),
        RegisterTrial("registers", config, seed),
        BusyTrial("registers of a busy NPU", launch(config, chain(config), seed)),
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


def _corners(config: Config, seed: int, count: int) -> Iterator[Trial]:
    """Instructions whose loops run once."""
    for number in range(count):
        rng = np.random.default_rng([seed, 5, number])
        given = launch(config, corners(rng, config, 60), dram=regions(number, config.lanes))
        yield _trial(f"corners {number}", config, given, MemoryOptions())


def _ties(config: Config, seed: int, count: int) -> Iterator[Trial]:
    """Values beside ties, so that every rounding decides a result."""
    for number in range(count):
        given = ties(np.random.default_rng([seed, 3, number]), config)
        yield _trial(f"ties {number}", config, given, MemoryOptions())


def _row_ties(config: Config, seed: int, count: int) -> Iterator[Trial]:
    """Softmaxes and layer normalizations in which every rounding decides a result."""
    for number in range(count):
        given = row_ties(np.random.default_rng([seed, 6, number]), config)
        yield _trial(f"ties of rows {number}", config, given, MemoryOptions())


def _extents(config: Config, seed: int) -> Iterator[Trial]:
    """Every extent at its limit and beyond it."""
    simulator = Simulator(config, checks=False, values=False)
    for name, step in at_limits(np.random.default_rng([seed, 4]), config):
        given = launch(config, [step, ("end", {})], seed)
        yield _trial(name, config, given, MemoryOptions(), values=False, simulator=simulator)


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
        "undeclared opcode": replace(
            program,
            opcode_mask=program.opcode_mask & ~(1 << DRAIN),
            contract_hash=contract_hash(opcodes_of(program.opcode_mask) - {DRAIN}, config),
        ),
        "unknown opcode that is declared": replace(
            program, opcode_mask=program.opcode_mask | 1 << 31, words=_patched(program, UNKNOWN)
        ),
        **{
            f"opcode of instruction 3 xor {bit}": replace(program, words=_patched(program, bit))
            for bit in (8, 16, 32, 64, 128)
        },
    }
    simulator = Simulator(config, checks=False)
    for name, other in wrong.items():
        yield _trial(name, config, replace(given, program=other), memory, simulator=simulator)
    presets = [0] * len(ENGINES) ** 2
    presets[STORE * len(ENGINES)] = 3  # left over: a whole program may not do that
    loose = replace(given, semaphores=tuple(presets))
    yield _trial("presets", config, loose, memory, simulator=simulator)
    yield _conflict(config, seed)
    yield _two_errors(config, seed)
    base = _trial("soft reset", config, given, memory, simulator=simulator)
    for limit in (43, 100, 150, base.expected.cycles - 1, base.expected.cycles):
        late = replace(given, cycle_limit=limit)
        yield _trial(f"watchdog after {limit}", config, late, memory, simulator=simulator)
    steps = chain(config)
    name, values = steps[3]
    steps[3] = (name, {**values, "take": values["take"] | 1 << STORE})  # nobody gives that token
    stuck = replace(launch(config, steps, seed), cycle_limit=2000)
    yield _trial("deadlock", config, stuck, memory, simulator=simulator)
    long = {"base_reg": 2, "count0": config.act_bank_rows, "local_stride0": 1}
    beyond = {"base_reg": 2, "local_base": config.act_rows, "local_stride0": 1}
    draining = launch(config, [("load", long), ("load", beyond), ("end", {})], seed)
    draining = replace(draining, cycle_limit=90)  # passes while the engine ends
    yield _trial("watchdog after an error", config, draining, memory, simulator=simulator)
    for wait in (0, 1, 20, 45, 60, 75, 90, 140, 200, 400):
        yield replace(base, name=f"soft reset after {wait}", abandon_after=wait)


def _two_errors(config: Config, seed: int) -> Trial:
    """A load that meets a bus error and gives a token too many in one cycle: the bus has it."""
    fields = {"base_reg": 2, "local_stride0": 1, "give": 1 << MATRIX}
    given = launch(config, [("load", fields), ("end", {})], seed)
    presets = [0] * len(ENGINES) ** 2
    presets[LOAD * len(ENGINES) + MATRIX] = SEMAPHORE_MAX
    given = replace(given, semaphores=tuple(presets))
    low = place({b: len(data) for b, data in launch_regions(given).items()}).address(2)
    memory = MemoryOptions(error_low=low, error_high=low + 1, error_reads=1)
    faults = [BusFault(2, 0, 1, writes=False)]
    simulator = Simulator(config, checks=False, values=False, bus_faults=faults)
    return _trial("two errors at once", config, given, memory, values=False, simulator=simulator)


def opcodes_of(mask: int) -> set[int]:
    """Opcodes in a mask."""
    return {i for i in range(32) if mask >> i & 1}


def _patched(program: Program, bits: int) -> NDArray[np.uint32]:
    words = program.words.copy()
    words[3, 0] ^= np.uint32(bits)
    return words


def _conflict(config: Config, seed: int) -> Trial:
    """A drain of the bank that a conv fills, without waiting: two engines at one memory port."""
    steps = chain(config)
    lanes = config.lanes
    many = {"in_h": 1, "in_w": 1, "out_w": 40, "out_tail": lanes, "in_tail": lanes}
    take = {"take": 1 << LOAD}
    steps[3] = ("conv", {**many, "accumulate": 1, **take})
    steps[4] = ("drain", {"out_w": 40, "tail": lanes, "dst_base": 200, **take})
    given = launch(config, steps, seed)
    honest = Simulator(config, checks=False, values=False).run(given)
    expected = replace(
        honest,
        error_code=int(ErrorCode.BANK),
        error_index=3,
        error_engine=MATRIX,
    )
    return Trial("bank conflict", given, expected, MemoryOptions(), False, False, False)
