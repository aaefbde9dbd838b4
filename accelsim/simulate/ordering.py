"""Order: which instructions the semaphores put before which, or why nothing can move any more.

What comes in: decoded instructions, presets and the queue depth. What goes out: a start order and
vector clocks. Token k from engine A to engine B is the one that B's k-th take from A receives, so
order does not depend on time. It knows nothing of data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ProgramError
from accelsim.simulate.decoded import END, Op
from accelsim.spec.config import ENGINES

COUNT = len(ENGINES)


@dataclass(frozen=True, slots=True)
class Order:
    """`sequence` is one legal start order of instruction indices, END left out.

    `clocks[i, e]` is the number of instructions of engine e that have ended before instruction i
    starts, whatever the timing; `ordinals[i]` numbers the instructions of i's own engine from 1.
    Instruction i is before instruction j exactly if ordinals[i] ≤ clocks[j, engine of i].
    """

    sequence: tuple[int, ...]
    clocks: NDArray[np.int32]  # (instructions, engines)
    ordinals: NDArray[np.int32]  # (instructions,)


class _Walk:
    """Dispatch, queues and semaphores without time: anything that can move moves."""

    def __init__(self, ops: Sequence[Op], depth: int, presets: Sequence[int]) -> None:
        self.ops, self.depth = ops, depth
        # Tokens in order of giving: index of the giver, -1 for a preset.
        self.tokens: list[deque[int]] = [deque([-1] * n) for n in presets]
        self.queues: list[deque[Op]] = [deque() for _ in ENGINES]
        self.next = 0
        self.sequence: list[int] = []
        self.clocks = np.zeros((len(ops), COUNT), np.int32)
        self.ordinals = np.zeros(len(ops), np.int32)
        self.last = [np.zeros(COUNT, np.int32) for _ in ENGINES]  # clock after the last instruction

    def dispatch(self) -> bool:
        """Queue instructions until a queue is full; whether one was queued."""
        before = self.next
        while self.next < len(self.ops) and self.ops[self.next].engine != END:
            queue = self.queues[self.ops[self.next].engine]
            if len(queue) >= self.depth:
                break
            queue.append(self.ops[self.next])
            self.next += 1
        return self.next > before

    def advance(self, engine: int) -> bool:
        """Run the head of one queue until it lacks a token; whether one ran."""
        queue, moved = self.queues[engine], False
        while queue and all(self.tokens[giver * COUNT + engine] for giver in queue[0].take):
            op = queue.popleft()
            clock = self.last[engine].copy()
            for giver in op.take:
                source = self.tokens[giver * COUNT + engine].popleft()
                if source >= 0:
                    np.maximum(clock, self.clocks[source], out=clock)
                    clock[giver] = max(clock[giver], self.ordinals[source])
            self.clocks[op.index] = clock
            self.ordinals[op.index] = clock[engine] + 1
            clock[engine] += 1
            self.last[engine] = clock
            for taker in op.give:
                self.tokens[engine * COUNT + taker].append(op.index)
            self.sequence.append(op.index)
            moved = True
        return moved

    def finished(self) -> bool:
        """Whether everything up to END ran."""
        at_end = self.next >= len(self.ops) or self.ops[self.next].engine == END
        return at_end and not any(self.queues)


def order(ops: Sequence[Op], depth: int, presets: Sequence[int], partial: bool) -> Order:
    """The order of a program. Raises ProgramError on deadlock and on tokens left at END."""
    walk = _Walk(ops, depth, presets)
    moving = True
    while moving:
        moving = walk.dispatch()
        for engine in range(COUNT):
            moving |= walk.advance(engine)
    if not walk.finished():
        raise ProgramError(f"deadlock: {'; '.join(_complaints(walk))}")
    if not partial:
        _check_leftovers(walk)
    return Order(tuple(walk.sequence), walk.clocks, walk.ordinals)


def _complaints(walk: _Walk) -> list[str]:
    """Who waits for whom, an engine a sentence, then dispatch."""
    result = []
    for engine, queue in enumerate(walk.queues):
        if not queue:
            continue
        op = queue[0]
        for giver in op.take:
            if not walk.tokens[giver * COUNT + engine]:
                result.append(
                    f"{op} on {ENGINES[engine]} waits for a token from {ENGINES[giver]}, "
                    f"which {_prospect(walk, giver, engine)}"
                )
    if walk.next < len(walk.ops) and walk.ops[walk.next].engine != END:
        op = walk.ops[walk.next]
        result.append(
            f"dispatch waits at {op} for a place in the full queue of {ENGINES[op.engine]}"
        )
    return result


def _prospect(walk: _Walk, giver: int, taker: int) -> str:
    """What keeps `giver` from giving `taker` a token."""
    for op in walk.queues[giver]:
        if taker in op.give:
            head = walk.queues[giver][0]
            behind = "" if op is head else f", queued behind {head}"
            return f"would give it in {op}{behind}"
    for op in walk.ops[walk.next :]:
        if op.engine == giver and taker in op.give:
            return f"would give it in {op}, not yet dispatched"
    return "gives it no more"


def _check_leftovers(walk: _Walk) -> None:
    for number, tokens in enumerate(walk.tokens):
        if tokens:
            giver, taker = divmod(number, COUNT)
            source = "a preset" if tokens[-1] < 0 else f"{walk.ops[tokens[-1]]}"
            raise ProgramError(
                f"{len(tokens)} tokens from {ENGINES[giver]} to {ENGINES[taker]} are left at END, "
                f"the last from {source}: a whole program must leave every semaphore at zero"
            )
