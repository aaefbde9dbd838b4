"""Tokens: turn the dependences of steps into `take` and `give` fields.

What comes in: steps in program order with their accesses. What goes out: per step the engines to
take from and to give to. A dependence that is already implied by earlier tokens costs none.

Between two engines tokens are counted, not named, so the k-th token given must answer to the k-th
taken. Both engines run in order and an edge is only added if it reaches further than all before it,
so givers and takers rise together and each instruction gives and takes at most one per engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from accelsim.artifacts import Step
from accelsim.spec.config import ENGINES
from accelsim.spec.isa import BY_NAME

NONE = -1
Clock = tuple[int, ...]  # per engine: the last step known to be complete
History = dict[str, list[list[tuple[int, int, int, bool]]]]  # memory → engine → accesses


def assign(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """(take, give) bit masks of every step."""
    count = len(ENGINES)
    history: History = defaultdict(lambda: [[] for _ in range(count)])
    clocks: list[Clock] = []
    last_on: list[int] = [NONE] * count
    take, give = [0] * len(steps), [0] * len(steps)
    for j, step in enumerate(steps):
        engine = BY_NAME[step.instruction].engine
        assert engine is not None
        clock = list(_before(clocks, last_on[engine], engine, count))
        needs = [_latest_conflict(history, step, f, clock[f]) for f in range(count)]
        needs[engine] = NONE
        # The furthest dependence first: it may imply the others.
        for f in sorted(range(count), key=lambda f: -needs[f]):
            if needs[f] <= clock[f]:
                continue
            take[j] |= 1 << f
            give[needs[f]] |= 1 << engine
            clock = [max(a, b) for a, b in zip(clock, clocks[needs[f]], strict=True)]
            clock[f] = max(clock[f], needs[f])
        clocks.append(tuple(clock))
        last_on[engine] = j
        for a in step.accesses:
            history[a.memory][engine].append((j, a.start, a.end, a.exclusive))
    return list(zip(take, give, strict=True))


def _before(clocks: list[Clock], previous: int, engine: int, count: int) -> Clock:
    """What is complete when the engine is free: all that its previous step knew, and that step."""
    if previous == NONE:
        return (NONE,) * count
    clock = list(clocks[previous])
    clock[engine] = previous
    return tuple(clock)


def _latest_conflict(history: History, step: Step, engine: int, known: int) -> int:
    """Last step of `engine` after `known` whose accesses conflict with those of `step`."""
    latest = NONE
    for a in step.accesses:
        for j, start, end, exclusive in reversed(history[a.memory][engine]):
            if j <= max(known, latest):
                break
            if start < a.end and a.start < end and (exclusive or a.exclusive):
                latest = j
                break
    return latest
