"""The long campaign of random programs: RTL against simulator, in values, cycles and errors.

`python -m tools.random_programs [--config NAME] [--count N] [--seed S] [--only NUMBER]`. Program
NUMBER of seed S is always the same, so a failure is repeated alone with `--only`; it is printed as
a small program that fails too. Three kinds take turns: legal programs one engine after the other,
legal programs on all engines at once (also behind a memory that stalls), and programs that overlap
or are broken on purpose.

Instructions whose values were compared are counted by opcode, mode, kind and flags.

Exit codes: 0 all agree, 1 a difference, 2 bad input or tool, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from accelsim.artifacts import Launch, RunResult
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.placement import random_skews
from accelsim.cosim.session import Cosim
from accelsim.cosim.setup import launch_placement
from accelsim.errors import AccelsimError
from accelsim.programs import coverage
from accelsim.programs.broken import KINDS, broken
from accelsim.programs.building import launch
from accelsim.programs.phases import random_launch
from accelsim.programs.reducing import reduced
from accelsim.programs.streams import overlapping, regions, serial
from accelsim.simulate import Simulator
from accelsim.spec.assembler import disassemble
from accelsim.spec.config import load_config

PROGRESS = 100


def main(arguments: list[str]) -> int:
    """Run the campaign; prints what differs first, and how to repeat it."""
    parser = argparse.ArgumentParser(prog="random", description=__doc__)
    parser.add_argument("--config", default="edge8")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this program alone")
    options = parser.parse_args(arguments)
    if options.count < 1 or options.seed < 0 or (options.only or 0) < 0:
        parser.error("--count must be positive, --seed and --only not negative")
    numbers = range(options.count) if options.only is None else (options.only,)
    done = 0
    counts: Counter[str] = Counter()
    try:
        with Cosim(load_config(options.config)) as rtl:
            for number in numbers:
                wrong = compare(rtl, options.seed, number, counts)
                if wrong:
                    print(f"program {number}: {wrong}")
                    print(
                        f"nox -s random -- --config {options.config} --seed {options.seed} "
                        f"--only {number}"
                    )
                    return 1
                done += 1
                if done % PROGRESS == 0:
                    print(f"{done} programs agree", file=sys.stderr, flush=True)
    except AccelsimError as error:
        print(f"random: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"random: interrupted after {done} programs that agree", file=sys.stderr)
        return 130
    for line in coverage.summary(counts):
        print(line)
    print(f"{done} programs of seed {options.seed} agree on {options.config}")
    return 0


def compare(rtl: Cosim, seed: int, number: int, counts: Counter[str]) -> str:
    """What differs between RTL and simulator for one program, or ""; counts forms drawn."""
    rng = np.random.default_rng([seed, number])
    return KIND[number % len(KIND)](rtl, rng, number, counts)


def _serial(rtl: Cosim, rng: np.random.Generator, number: int, counts: Counter[str]) -> str:
    """Every engine, one instruction after the other, bases off their pages."""
    config = rtl.config
    given = launch(
        config, serial(rng, config, int(rng.integers(10, 60))), dram=regions(number, config.lanes)
    )
    counts += coverage.drawn(given.program.words)
    rtl.memory, rtl.skews = MemoryOptions(latency=int(rng.integers(2, 120))), random_skews(number)
    addresses = launch_placement(given, rtl.skews).addresses()
    simulator = Simulator(config, latency=rtl.memory.latency, base_addresses=addresses)
    wrong = difference(simulator.run(given), rtl.launch(given))
    return wrong + _small(rtl, given) if wrong else ""


def _small(rtl: Cosim, given: Launch) -> str:
    """The text of a small program that still differs, instructions in turn."""
    addresses = launch_placement(given, rtl.skews).addresses()
    simulator = Simulator(rtl.config, latency=rtl.memory.latency, base_addresses=addresses)
    small = reduced(given, lambda one: difference(simulator.run(one), rtl.launch(one)) != "")
    if small is None:
        return "; it agrees when its instructions run one after the other"
    return f"; so does this one over the same memory:\n{disassemble(small.program.words)}"


def _phases(rtl: Cosim, rng: np.random.Generator, number: int, counts: Counter[str]) -> str:
    """All engines at once; then the same behind a memory that stalls, where cycles may differ."""
    given: Launch = random_launch(rng, rtl.config)
    counts += coverage.drawn(given.program.words)
    rtl.memory, rtl.skews = MemoryOptions(latency=int(rng.integers(2, 120))), {}
    expected = Simulator(rtl.config, latency=rtl.memory.latency).run(given)
    wrong = difference(expected, rtl.launch(given))
    if wrong:
        return wrong + _small(rtl, given)
    rtl.memory = random_stalls(seed=number)
    return memory_difference(expected, rtl.launch(given))


def _broken(rtl: Cosim, rng: np.random.Generator, number: int, _: Counter[str]) -> str:
    """Programs that race, deadlock, or meet errors: the same cycles, codes and tokens."""
    config = rtl.config
    steps = overlapping(rng, config, int(rng.integers(1, 40)))
    given, memory, faults = broken(rng, launch(config, steps, seed=number), str(rng.choice(KINDS)))
    rtl.memory, rtl.skews = memory, {}
    simulator = Simulator(
        config, latency=memory.latency, checks=False, values=False, bus_faults=faults
    )
    return outcome_difference(_undigested(simulator.run(given)), _undigested(rtl.launch(given)))


Comparison = Callable[[Cosim, np.random.Generator, int, Counter[str]], str]
KIND: tuple[Comparison, ...] = (_serial, _phases, _broken)


def _undigested(result: RunResult) -> RunResult:
    return replace(result, records=tuple(replace(r, digest=0) for r in result.records))


def difference(expected: RunResult, actual: RunResult) -> str:
    """The first of error, cycles, tokens, records or memory that differs, in words, or ""."""
    return outcome_difference(expected, actual) or memory_difference(expected, actual)


def outcome_difference(expected: RunResult, actual: RunResult) -> str:
    """Everything but memory."""
    for name in ("error_code", "error_index", "error_engine", "cycles", "semaphores"):
        one, other = getattr(expected, name), getattr(actual, name)
        if one != other:
            return f"{name} is {one} on sim and {other} on rtl"
    if len(expected.records) != len(actual.records):
        return f"{len(expected.records)} records on sim, {len(actual.records)} on rtl"
    for one, other in zip(expected.records, actual.records, strict=True):
        if one != other:
            return f"{one} on sim, {other} on rtl"
    return ""


def memory_difference(expected: RunResult, actual: RunResult) -> str:
    """The first byte that differs."""
    if not expected.dram:
        return "no memory was compared"
    for base, data in expected.dram.items():
        wrong = np.flatnonzero(np.asarray(actual.dram[base]) != data)
        if len(wrong):
            at = int(wrong[0])
            return (
                f"byte {at} of base register {base} is {data[at]} on sim and "
                f"{actual.dram[base][at]} on rtl"
            )
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
