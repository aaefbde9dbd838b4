"""Drivers and monitors of valid/ready streams, for cocotb tests of any module.

What comes in: signal names and a pattern. What goes out: words sent and received, and proof that
the requested stalls took place. This module must not know which module it tests.

Signals change after a rising edge of `clk_i` and are sampled at the next one. A word is an int
where a stream has one data signal, and a dict by signal name where it has several.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Iterable, Sequence
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, RisingEdge, Timer, with_timeout

Word = int | dict[str, int]
CLOCK_NS = 10


class Pattern(enum.Enum):
    """Where random stalls go: nowhere, at the source, at the sink, or at both."""

    NONE = "none"
    IDLE = "idle"
    BACKPRESSURE = "backpressure"
    BOTH = "both"

    @property
    def idles(self) -> bool:
        """The source leaves gaps."""
        return self in (Pattern.IDLE, Pattern.BOTH)

    @property
    def stalls(self) -> bool:
        """The sink takes ready away."""
        return self in (Pattern.BACKPRESSURE, Pattern.BOTH)


def start_clock(dut: Any) -> None:
    """Starts a 100 MHz clock on `clk_i`."""
    Clock(dut.clk_i, CLOCK_NS, unit="ns").start()


async def reset(dut: Any, cycles: int = 3) -> None:
    """Starts the clock, sets every input `…_i` to 0, holds `rst_ni` low for `cycles` cycles.

    Returns just after a rising edge at which `rst_ni` was high.
    """
    dut.rst_ni.value = 0
    for handle in dut:
        if handle._name.endswith("_i") and handle._name != "clk_i":
            handle.value = 0
    await Timer(1, "ns")  # before the first edge, which would see random state out of reset
    start_clock(dut)
    await ClockCycles(dut.clk_i, cycles)
    dut.rst_ni.value = 1
    await RisingEdge(dut.clk_i)


def seeded_rng(salt: str = "") -> random.Random:
    """A generator that depends on the run's seed and on `salt` only."""
    return random.Random(f"{cocotb.RANDOM_SEED}/{salt}")


def _pack(handles: dict[str, Any]) -> Word:
    values = {name: int(handle.value) for name, handle in handles.items()}
    return next(iter(values.values())) if len(values) == 1 else values


class StreamDriver:
    """Sends words into the DUT; waits at random where the pattern has idles.

    `stalled_cycles` counts cycles in which valid was high and ready low.
    """

    def __init__(
        self,
        dut: Any,
        valid: str,
        ready: str,
        data: Sequence[str],
        pattern: Pattern = Pattern.NONE,
        idle_chance: float = 0.5,
    ) -> None:
        self.clock = dut.clk_i
        self.name = valid
        self.valid = getattr(dut, valid)
        self.ready = getattr(dut, ready)
        self.data = {name: getattr(dut, name) for name in data}
        self.pattern = pattern
        self.idle_chance = idle_chance
        self.rng = seeded_rng(valid)
        self.stalled_cycles = 0
        self.idle_cycles = 0
        self.valid.value = 0

    async def send(self, word: Word) -> None:
        """Presents one word until it is taken."""
        while self.pattern.idles and self.rng.random() < self.idle_chance:
            self.idle_cycles += 1
            await RisingEdge(self.clock)
        values = word if isinstance(word, dict) else {next(iter(self.data)): word}
        for name, value in values.items():
            self.data[name].value = value
        self.valid.value = 1
        while True:
            await RisingEdge(self.clock)
            if self.ready.value == 1:
                break
            self.stalled_cycles += 1
        self.valid.value = 0
        for name in values:  # garbage while not valid: nothing may depend on it
            self.data[name].value = self.rng.getrandbits(len(self.data[name]))

    async def send_all(self, words: Iterable[Word]) -> None:
        """Sends words one after another."""
        for word in words:
            await self.send(word)

    def finish(self, expect_stalls: bool | None = None) -> None:
        """Asserts that what the pattern promises was seen at this end.

        `expect_stalls` says whether ready must have been low at some valid word; the default is
        the pattern's (backpressure at the far end must reach this stream). Pass False where the
        module cannot stall its input within this test.
        """
        wanted = self.pattern.stalls if expect_stalls is None else expect_stalls
        assert not wanted or self.stalled_cycles > 0, f"{self.name}: valid and not ready never seen"
        assert not self.pattern.idles or self.idle_cycles > 0, f"{self.name}: no idle cycle"


class StreamMonitor:
    """Takes words from the DUT; drives ready, at random where the pattern has backpressure.

    Fails where data or valid change while valid is high and ready low.
    """

    def __init__(
        self,
        dut: Any,
        valid: str,
        ready: str | None,
        data: Sequence[str],
        pattern: Pattern = Pattern.NONE,
        stall_chance: float = 0.5,
    ) -> None:
        self.clock = dut.clk_i
        self.name = valid
        self.valid = getattr(dut, valid)
        self.ready = getattr(dut, ready) if ready is not None else None
        self.data = {name: getattr(dut, name) for name in data}
        self.pattern = pattern
        self.stall_chance = stall_chance
        self.rng = seeded_rng(valid)
        self.words: Queue[Word] = Queue()
        self.stalled_cycles = 0
        if self.ready is not None:
            self.ready.value = 0
        self.task = cocotb.start_soon(self._run())

    async def _run(self) -> None:
        held: Word | None = None
        while True:
            ready = not (self.pattern.stalls and self.rng.random() < self.stall_chance)
            if self.ready is not None:
                self.ready.value = int(ready)
            await RisingEdge(self.clock)
            valid = self.valid.value == 1
            assert valid or held is None, f"{self.name}: valid fell before ready"
            if not valid:
                continue
            word = _pack(self.data)
            assert held is None or held == word, f"{self.name}: {held} became {word} while stalled"
            if ready or self.ready is None:
                held = None
                self.words.put_nowait(word)
            else:
                held = word
                self.stalled_cycles += 1

    async def receive(self, count: int, timeout_cycles: int = 100_000) -> list[Word]:
        """The next `count` words. Raises cocotb's SimTimeoutError where they do not come."""

        async def collect() -> list[Word]:
            return [await self.words.get() for _ in range(count)]

        return await with_timeout(collect(), timeout_cycles * CLOCK_NS, "ns")

    def finish(self, expect_stalls: bool | None = None) -> None:
        """Asserts that stalls took place as the pattern says and that no word is left over."""
        wanted = self.pattern.stalls if expect_stalls is None else expect_stalls
        assert not wanted or self.stalled_cycles > 0, f"{self.name}: valid and not ready never seen"
        assert self.words.empty(), f"{self.name}: {self.words.qsize()} words more than expected"


async def withdraw(dut: Any, command: int) -> None:
    """Offers commands to an engine that is busy, and withdraws one as a stop does, one by a reset.

    Ports as those of an engine: cmd_i, cmd_valid_i. No assertion may fire.
    """
    for ends_in_reset in (False, True):
        dut.cmd_i.value = command
        dut.cmd_valid_i.value = 1
        for _ in range(3):  # one is taken, the next one waits
            await RisingEdge(dut.clk_i)
        dut.cmd_i.value = command ^ 1 << 300
        if ends_in_reset:
            dut.rst_ni.value = 0
        else:
            dut.cmd_valid_i.value = 0
        for _ in range(3):
            await RisingEdge(dut.clk_i)
