"""What the clock is given and what it reports: traffic of a program, cycles of its instructions.

What comes in: nothing. What goes out: types. See `accelsim.simulate.timing` for the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelsim.simulate.decoded import Op
from accelsim.spec.registers import ErrorCode

# Which of several error events of one cycle and instruction index is reported: the first.
PRIORITY = (
    ErrorCode.CONTRACT,
    ErrorCode.BUS_READ,
    ErrorCode.BUS_WRITE,
    ErrorCode.SEMAPHORE,
    ErrorCode.BANK,
    ErrorCode.BUS_FETCH,
    ErrorCode.OPCODE,
    ErrorCode.FIELD,
    ErrorCode.EXTENT,
    ErrorCode.DRAM_EXTENT,
    ErrorCode.NO_END,
    ErrorCode.WATCHDOG,
)


@dataclass(slots=True)
class Retired:
    """One instruction that an engine started."""

    op: Op
    start: int
    end: int = -1


@dataclass(frozen=True, slots=True)
class Fault:
    """An error event: code, instruction index and engine, as the status registers give them."""

    code: ErrorCode
    index: int
    engine: int
    cycle: int
    priority: int  # among events of one cycle and index, the lowest wins


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened when."""

    retired: list[Retired]  # in start order
    cycles: int
    fault: Fault | None
    semaphores: tuple[int, ...]
    counters: dict[str, int]


@dataclass(slots=True)
class Traffic:
    """What the DMA engines and fetch ask of AXI, and where the bus fails."""

    bursts: Sequence[list[int]]  # by instruction index; empty but for load and store
    failing: frozenset[int] = frozenset()  # loads and stores that meet a bus error
    failing_fetch: frozenset[int] = frozenset()
