"""Launches with something wrong in them, and the memory and bus faults that go with each.

What comes in: a generator and a launch. What goes out: another launch, options of the co-simulated
memory and the same bus faults as the simulator takes them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelsim.artifacts import Launch
from accelsim.cosim.memory import MemoryOptions
from accelsim.cosim.placement import place
from accelsim.cosim.session import launch_regions
from accelsim.simulate import BusFault

# Drawn from as they stand: bus errors hit a transfer only now and then.
KINDS = ("right", "bit", "no end", "limit", "tokens", "bus", "bus")


def broken(
    rng: np.random.Generator, given: Launch, kind: str
) -> tuple[Launch, MemoryOptions, list[BusFault]]:
    """A launch with an error of a kind of `KINDS`; the latency of its memory is random too."""
    memory = MemoryOptions(latency=int(rng.choice([2, 5, 32, 60, 100])))
    words = given.program.words.copy()
    faults = []
    if kind == "bit":
        words[rng.integers(len(words)), rng.integers(16)] ^= np.uint32(1 << rng.integers(32))
    elif kind == "no end":
        words = words[:-1]
    elif kind == "limit":
        given = replace(given, cycle_limit=int(rng.integers(1, 3000)))
    elif kind == "tokens":
        given = replace(given, semaphores=tuple(int(n) for n in rng.integers(250, 256, 16)))
    elif kind == "bus":
        base = int(rng.integers(8))
        placement = place({b: len(data) for b, data in launch_regions(given).items()})
        first = int(rng.integers(min(placement.sizes[base], 6000)))
        end = first + int(rng.integers(1, 3000 if base else 64))
        faults.append(BusFault(base, first, end))
        low = placement.address(base)
        memory = replace(
            memory, error_low=low + first, error_high=low + end, error_reads=1, error_writes=1
        )
    return replace(given, program=replace(given.program, words=words)), memory, faults
