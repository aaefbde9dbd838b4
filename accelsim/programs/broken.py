"""Launches with something wrong in them, and the memory and bus faults that go with each.

What comes in: a generator and a launch. What goes out: another launch, options of the co-simulated
memory and the same bus faults as the simulator takes them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch
from accelsim.cosim.memory import MemoryOptions
from accelsim.cosim.placement import Placement, place
from accelsim.cosim.setup import launch_regions
from accelsim.programs.building import REGION_BEATS
from accelsim.simulate import BusFault
from accelsim.simulate.decoded import END, make_op
from accelsim.simulate.footprint import footprint, ports
from accelsim.spec.config import Config
from accelsim.spec.encoding import check, decode, encode
from accelsim.spec.isa import PROGRAM_BASE

Words = NDArray[np.uint32]
# Drawn from as they stand: bus errors hit a transfer only now and then.
KINDS = ("right", "bit", "far", "no end", "limit", "tokens", "bus", "bus")


def broken(
    rng: np.random.Generator, given: Launch, kind: str
) -> tuple[Launch, MemoryOptions, list[BusFault]]:
    """A launch with an error of a kind of `KINDS`; the latency of its memory is random too."""
    memory = MemoryOptions(latency=int(rng.choice([2, 5, 32, 60, 100])))
    words = given.program.words.copy()
    faults = []
    if kind == "bit":
        words = _flipped(rng, words, given.program.config)
    elif kind == "far":
        words = _far(rng, words, given.program.config)
    elif kind == "no end":
        words = words[:-1]
    elif kind == "limit":
        given = replace(given, cycle_limit=int(rng.integers(1, 3000)))
    elif kind == "tokens":
        given = replace(given, semaphores=tuple(int(n) for n in rng.integers(250, 256, 16)))
    elif kind == "bus":
        placement = place({b: len(data) for b, data in launch_regions(given).items()})
        base, first = _fault(rng, words, placement, given.program.config)
        end = first + int(rng.integers(1, 3000 if base else 64))
        faults.append(BusFault(base, first, end))
        low = placement.address(base)
        memory = replace(
            memory, error_low=low + first, error_high=low + end, error_reads=1, error_writes=1
        )
    return replace(given, program=replace(given.program, words=words)), memory, faults


def _flipped(rng: np.random.Generator, words: Words, config: Config) -> Words:
    """One bit of one instruction flipped, such that engines still never share a memory port.

    That would be error BANK, which a simulator without its analysis does not see.
    """
    while True:
        index = int(rng.integers(len(words)))
        flipped = words.copy()
        flipped[index, rng.integers(16)] ^= np.uint32(1 << rng.integers(32))
        used = [_ports(w, config) for w in flipped]
        engine, own = used[index]
        others = set().union(*(found for e, found in used if e != engine))
        if not own & others:
            return flipped


def _ports(words: NDArray[np.uint32], config: Config) -> tuple[int, set[tuple[str, int]]]:
    """The engine of an instruction and the memory ports that it uses; none if it is refused."""
    if check(words, config) is not None:
        return END, set()
    row, values = decode(words)
    op = make_op(0, row.name, values, config)
    touches = ports(op, footprint(op, config), config)
    numbers = ((t.memory, t.rows) for t in touches)
    return op.engine, {(m, int(p)) for m, rows in numbers for p in np.r_[rows]}


def _far(rng: np.random.Generator, words: Words, config: Config) -> Words:
    """One transfer, if there is one, that ends behind the memory of its base register."""
    found = _transfers(words)
    if not found:
        return words
    index = int(rng.choice(list(found)))
    name, values = found[index]
    moved = {**values, "dram_offset": int(rng.integers(REGION_BEATS, 1 << 32))}
    changed = words.copy()
    changed[index] = encode(name, moved, config)
    return changed


def _fault(
    rng: np.random.Generator, words: Words, placement: Placement, config: Config
) -> tuple[int, int]:
    """Base register and byte where a bus fault begins: at a transfer, in the program, anywhere."""
    found = list(_transfers(words).values())
    draw = rng.random()
    if found and draw < 0.65:
        _, values = found[int(rng.integers(len(found)))]
        beat = values["dram_offset"] + int(rng.integers(values["count0"]))
        return values["base_reg"], beat * config.lanes
    base = PROGRAM_BASE if draw < 0.8 else int(rng.integers(8))
    return base, int(rng.integers(min(placement.sizes[base], 6000)))


def _transfers(words: Words) -> dict[int, tuple[str, dict[str, int]]]:
    """Index → name and fields of each load and store."""
    decoded = ((i, *decode(instruction)) for i, instruction in enumerate(words))
    return {i: (row.name, values) for i, row, values in decoded if row.name in ("load", "store")}
