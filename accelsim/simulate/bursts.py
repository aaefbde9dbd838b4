"""AXI bursts of loads and stores, and the bus errors that a test injects.

What comes in: DRAM fields of an instruction and the address of its base register. What goes out:
beats of each burst in the order of the contract (count2 outer, count1, count0 inner; runs are split
at 4 KiB boundaries and at 256 beats, never merged).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAGE_BYTES = 4096
BURST_BEATS = 256


@dataclass(frozen=True, slots=True)
class BusFault:
    """Accesses to bytes [first, end) behind a base register get SLVERR."""

    base: int
    first_byte: int
    end_byte: int
    reads: bool = True
    writes: bool = True


def run_starts(v: Mapping[str, int]) -> NDArray[np.int64]:
    """First beat, from the base register, of each contiguous run in order."""
    outer = np.arange(v["count2"], dtype=np.int64) * v["dram_stride2"] + v["dram_offset"]
    return (outer[:, None] + np.arange(v["count1"]) * v["dram_stride1"]).reshape(-1)


def split(phase: int, beats: int, page_beats: int) -> list[int]:
    """Burst lengths of one run that starts `phase` beats into a page."""
    result = []
    while beats:
        length = min(beats, BURST_BEATS, page_beats - phase)
        result.append(length)
        beats -= length
        phase = (phase + length) % page_beats
    return result


def burst_beats(v: Mapping[str, int], lanes: int, base_address: int) -> list[int]:
    """Beats of every burst of a load or store; `base_address` in bytes."""
    page = PAGE_BYTES // lanes
    count = v["count0"]
    phases = (run_starts(v) + base_address // lanes) % page
    if count <= BURST_BEATS and int(phases.max()) + count <= page:
        return [count] * len(phases)
    unique, inverse = np.unique(phases, return_inverse=True)
    pieces = [split(int(p), count, page) for p in unique]
    if len(pieces) == 1:
        return pieces[0] * len(phases)
    return [length for i in inverse.tolist() for length in pieces[i]]


def meets_fault(v: Mapping[str, int], lanes: int, write: bool, faults: Sequence[BusFault]) -> bool:
    """Whether a load or store touches a window in which its kind of access fails."""
    for fault in faults:
        if fault.base != v["base_reg"] or not (fault.writes if write else fault.reads):
            continue
        first = run_starts(v) * lanes
        end = first + v["count0"] * lanes
        if bool(np.any((first < fault.end_byte) & (end > fault.first_byte))):
            return True
    return False
