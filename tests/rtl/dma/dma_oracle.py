"""Random loads and stores, the bursts and rows that they are made of, and when each one happens.

What comes in: a generator and a configuration. What goes out: field values, and lists in the order
of the contract. Cycles are those of the contract's text, written down once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accelsim.programs.transfers import PAGE_BYTES, random_fields
from accelsim.spec.config import Config
from accelsim.spec.encoding import check, encode

Values = dict[str, int]
MAX_BURST_BEATS = 256


@dataclass(frozen=True, slots=True)
class Job:
    """One LOAD or STORE, its instruction and its base address in bytes."""

    values: Values
    instruction: int
    base: int


def random_job(rng: np.random.Generator, config: Config, name: str, beats: int) -> Job:
    """A legal job of at most `beats` beats, often at the edge of a page."""
    while True:
        values = random_fields(rng, config, beats)
        if name == "load":
            values["memory"] = int(rng.integers(4))
        if values["count0"] * values["count1"] * values["count2"] > beats:
            continue
        words = encode(name, values, config)
        if check(words, config) is None:
            instruction = int.from_bytes(words.astype("<u4").tobytes(), "little")
            return Job(values, instruction, int(rng.integers(0, 1 << 33)) << 6)


def content(address: int, lanes: int) -> bytes:
    """What DRAM holds at a byte address."""
    return hashlib.blake2b(address.to_bytes(8, "little"), digest_size=lanes).digest()


def runs(job: Job, lanes: int) -> Iterator[tuple[int, int]]:
    """Byte address and first local row of each contiguous run."""
    v = job.values
    for group in range(v["count2"]):
        for run in range(v["count1"]):
            beat = v["dram_offset"] + group * v["dram_stride2"] + run * v["dram_stride1"]
            row = v["local_base"] + group * v["local_stride2"] + run * v["local_stride1"]
            yield (job.base + beat * lanes) % (1 << 40), row


def beats(job: Job, lanes: int) -> list[tuple[int, int]]:
    """Byte address and local row of every beat."""
    v = job.values
    return [
        ((address + i * lanes) % (1 << 40), row + i * v["local_stride0"])
        for address, row in runs(job, lanes)
        for i in range(v["count0"])
    ]


def bursts(job: Job, lanes: int) -> list[tuple[int, int]]:
    """Byte address and beats of every burst."""
    result = []
    for address, _ in runs(job, lanes):
        left = job.values["count0"]
        while left:
            room = (PAGE_BYTES - address % PAGE_BYTES) // lanes
            length = min(left, room, MAX_BURST_BEATS)
            result.append((address, length))
            address = (address + length * lanes) % (1 << 40)
            left -= length
    return result


@dataclass(frozen=True, slots=True)
class Times:
    """Cycles of a job: each burst's address, first beat and last beat (or response), and done."""

    address: list[int]
    first_beat: list[int]
    done: int


def load_times(lengths: list[int], start: int, latency: int, outstanding: int) -> Times:
    """A load alone on the contract's memory."""
    address: list[int] = []
    first: list[int] = []
    last: list[int] = []
    for k, length in enumerate(lengths):
        cycle = address[-1] + 1 if k else start + 1
        if k >= outstanding:
            cycle = max(cycle, last[k - outstanding] + 1)
        address.append(cycle)
        first.append(max(cycle + latency, last[-1] + 1 if k else 0))
        last.append(first[-1] + length - 1)
    return Times(address, first, last[-1] + 1)


def store_times(lengths: list[int], start: int, latency: int, outstanding: int) -> Times:
    """A store alone on the contract's memory."""
    address: list[int] = []
    first: list[int] = []
    response: list[int] = []
    for k, length in enumerate(lengths):
        cycle = address[-1] + 1 if k else start + 1
        if k >= outstanding:
            cycle = max(cycle, response[k - outstanding] + 1)
        address.append(cycle)
        after = first[-1] + lengths[k - 1] if k else start + 3
        first.append(max(cycle + 1, after))
        begin = max(first[-1] + length - 1 + latency, response[-1] if k else 0)
        response.append(begin + length)
    return Times(address, first, response[-1] + 1)
