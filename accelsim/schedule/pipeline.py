"""How long pieces of work take one behind the other: an estimate by which plans are compared.

What comes in: for each piece the cycles of its loads, products, drains and store. What goes out:
cycles from the first load to the last response. Engines overlap as the hardware lets them, with two
slots of every buffer. It must not know operators; the simulator's timing is exact, this is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelsim.spec.config import Config
from accelsim.spec.isa import INSTRUCTION_BYTES

LATENCY = 32  # cycles of the memory that the estimate assumes
PAGE_BYTES = 4096  # bursts end where a page does
ISSUE = 3  # cycles of a transfer beyond latency and beats
DISPATCH = 10  # cycles from one instruction to the next: latency over those fetched ahead


@dataclass(frozen=True, slots=True)
class Work:
    """One piece: what it loads, multiplies, drains and stores, in cycles."""

    constants: tuple[int, ...]  # loads of weights and parameters
    load: int
    opens: bool  # the load goes to another slot than the one before
    products: tuple[int, ...]  # matrix instructions
    drains: tuple[int, ...]
    store: int
    beats: int  # of its input
    others: int  # beats of its store and its instructions: they share the bus with another load


def load_cycles(values: Mapping[str, int], config: Config) -> int:
    """Cycles of a load on a free bus, from the counts of its instruction."""
    beats, bursts, burst = _bursts(values, config)
    turns = bursts * (LATENCY + burst) // config.read_outstanding
    return LATENCY + ISSUE + max(beats, turns)


def store_cycles(values: Mapping[str, int], config: Config) -> int:
    """Cycles of a store on a free bus: memory serves a burst once it has all of it."""
    beats, bursts, burst = _bursts(values, config)
    turns = bursts * (LATENCY + 2 * burst + 2) // config.write_outstanding
    return LATENCY + ISSUE + max(beats, turns) + burst


def _bursts(values: Mapping[str, int], config: Config) -> tuple[int, int, int]:
    """Beats, number of bursts and beats of one burst."""
    length = values["count0"]
    runs = values.get("count1", 1) * values.get("count2", 1)
    bursts = runs * -(-length * config.bus_bytes // PAGE_BYTES)
    return runs * length, bursts, -(-runs * length // bursts)


def instruction_beats(count: int, config: Config) -> int:
    """Beats that fetching takes of the bus."""
    return count * INSTRUCTION_BYTES // config.bus_bytes


def steady_cycles(work: Work, slots: int) -> int:
    """Cycles of one of many equal pieces: those of the engine that has most to do.

    With one slot for outputs drains wait for the store.
    """
    instructions = 2 + len(work.constants) + 2 * len(work.products)
    return max(
        sum(work.constants) + shared_load(work, work.others),
        sum(work.products) + len(work.products),
        sum(work.drains) + len(work.drains),
        work.store + (sum(work.drains) if slots == 1 else 0),
        instructions * DISPATCH,
    )


def shared_load(work: Work, others: int) -> int:
    """Cycles of the load of a piece while another one is stored and instructions are fetched."""
    return max(work.load, LATENCY + ISSUE + work.beats + others)


def total_cycles(works: Sequence[Work], slots: int) -> int:
    """Cycles of all pieces, with so many slots for outputs.

    Parameters of the first one, which its products do not need, arrive behind the second input.
    """
    load = matrix = vector = store = late = 0
    ends: list[int] = []  # of all products that read an input slot
    stored: list[int] = []  # of each piece: its output slot is free
    drained: list[int] = []  # of each product: its accumulator bank is free
    for number, work in enumerate(works):
        if work.opens:
            load = max(load, ends[-2]) if len(ends) > 1 else load
            ends.append(0)
        early = work.constants[:1] if number == 0 else work.constants
        others = works[number - 2].others if number > 1 else 0
        load += sum(early) + (shared_load(work, others) if work.load else 0)
        ready = load
        if number == 0:
            second = works[1] if len(works) > 1 else None
            behind = sum(second.constants) + second.load if second else 0
            late = load + behind + sum(work.constants[1:])
        elif number == 1:
            load += sum(works[0].constants[1:])
        for product, drain in zip(work.products, work.drains, strict=True):
            free = drained[-2] if len(drained) > 1 else 0
            matrix = max(matrix, ready, free) + 1 + product
            slot = stored[-slots] if len(stored) >= slots else 0
            vector = max(vector, matrix, slot, late) + 1 + drain
            drained.append(vector)
        ends[-1] = matrix
        store = max(store, vector) + 1 + work.store
        stored.append(store)
    return store
