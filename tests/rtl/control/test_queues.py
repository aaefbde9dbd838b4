"""Queues and semaphores start commands in the cycles that the contract states, and no other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import Pattern, reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS

BENCH = Path(__file__).parent / "token_bench.sv"
DEPTH = CONFIGS["edge8"].queue_depth
ROUNDS, CYCLES = 25, 150
LIMIT = 255


def run(only: str, seed: int, expect_failure: str | None = None) -> None:
    sources = (*rtl("gen/edge8/npu_pkg.sv", "npu_queue.sv", "npu_semaphores.sv"), BENCH)
    run_unit("token_bench", sources, __name__, seed=seed, only=only, expect_failure=expect_failure)


@pytest.mark.rtl
def test_commands_start_exactly_when_tokens_and_engine_allow(seed: int) -> None:
    run("check_model", seed)


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("check_unstable_push", "npu_queue: command changed while valid and not ready"),
        ("check_done_of_nothing", "npu_queue: engine is done with nothing"),
    ],
)
def test_protocol_violations_are_seen_by_the_assertions(
    check: str, message: str, seed: int
) -> None:
    run(check, seed, message)


@dataclass
class Command:
    index: int
    take: int
    give: int

    @property
    def bits(self) -> int:
        return self.index << 512 | self.give << 12 | self.take << 8 | 2


@dataclass
class Model:
    """What the contract says, a cycle at a time."""

    counts: list[int]
    waiting: list[list[Command]] = field(default_factory=lambda: [[] for _ in range(4)])
    running: list[Command | None] = field(default_factory=lambda: [None] * 4)

    def can_start(self, engine: int, run: bool) -> bool:
        if not self.waiting[engine] or self.running[engine] is not None or not run:
            return False
        take = self.waiting[engine][0].take
        return all(self.counts[4 * g + engine] for g in range(4) if take >> g & 1)

    def step(self, started: list[bool], done: list[bool], pushed: list[Command | None],
             run: bool) -> int:  # fmt: skip
        """Ends the cycle; returns the givers whose token was one too many."""
        overflow = 0
        change = [0] * 16
        for engine in range(4):
            finished = self.running[engine] if done[engine] else None
            if finished is not None:
                self.running[engine] = None
                for taker in range(4):
                    change[4 * engine + taker] += run and finished.give >> taker & 1
            if started[engine]:
                command = self.waiting[engine].pop(0)
                self.running[engine] = command
                for giver in range(4):
                    change[4 * giver + engine] -= command.take >> giver & 1
            command_in = pushed[engine]
            if command_in is not None:
                self.waiting[engine].append(command_in)
        for i, step in enumerate(change):
            if self.counts[i] + step > LIMIT:
                overflow |= 1 << i // 4
            else:
                self.counts[i] += step
        return overflow


def bits(flags: list[bool]) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def mask(rng: random.Random, engine: int) -> int:
    """Mostly no engine, sometimes one or two, never its own."""
    return rng.choice([0, 0, 1 << rng.randrange(4), rng.getrandbits(4)]) & ~(1 << engine)


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_model(dut: Any, pattern: Pattern) -> None:
    rng = seeded_rng(f"queues {pattern}")
    await reset(dut)
    seen = {"start": 0, "full": 0, "cmd stalled": 0, "overflow": 0, "stopped": 0, "max": 0}
    for _ in range(ROUNDS):
        preset = [rng.choice([0, 0, 1, 2, 254, 255]) for _ in range(16)]
        dut.preset_i.value = sum(value << 8 * i for i, value in enumerate(preset))
        dut.run_i.value = dut.push_valid_i.value = dut.done_i.value = 0
        dut.clear_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.clear_i.value, dut.load_i.value = 0, 1
        await RisingEdge(dut.clk_i)
        dut.load_i.value = 0
        model = Model(list(preset))
        stop = rng.randrange(CYCLES) if rng.random() < 0.3 else CYCLES
        offer: tuple[int, Command] | None = None
        left = [0] * 4
        index = 0
        for cycle in range(CYCLES):
            live = cycle < stop
            seen["stopped"] += not live
            if not live:
                offer = None
            elif offer is None and not (pattern.idles and rng.random() < 0.5):
                engine = rng.randrange(4)
                offer = engine, Command(index, mask(rng, engine), mask(rng, engine))
                index += 1
            ready = [not (pattern.stalls and rng.random() < 0.5) for _ in range(4)]
            done = [model.running[e] is not None and left[e] == 0 for e in range(4)]
            dut.run_i.value = int(live)
            dut.push_valid_i.value = 1 << offer[0] if offer else 0
            dut.push_cmd_i.value = offer[1].bits if offer else 0
            dut.cmd_ready_i.value, dut.done_i.value = bits(ready), bits(done)
            before = Model(list(model.counts), model.waiting, model.running)
            await RisingEdge(dut.clk_i)
            can = [before.can_start(e, live) for e in range(4)]
            room = [len(model.waiting[e]) < DEPTH for e in range(4)]
            assert int(dut.cmd_valid_o.value) == bits(can)
            assert int(dut.push_ready_o.value) == bits(room)
            assert int(dut.busy_o.value) == bits([r is not None for r in model.running])
            assert int(dut.empty_o.value) == bits([not w for w in model.waiting])
            for e in range(4):
                first = model.running[e] or (model.waiting[e][0] if model.waiting[e] else None)
                if first is not None:
                    assert int(dut.oldest_index_o.value) >> 32 * e & 0xFFFFFFFF == first.index
            started = [c and r for c, r in zip(can, ready, strict=True)]
            assert int(dut.start_o.value) == bits(started)
            pushed: list[Command | None] = [None] * 4
            if offer and room[offer[0]]:
                pushed[offer[0]] = offer[1]
            elif offer:
                seen["full"] += 1
            counts = int(dut.count_o.value)
            assert [counts >> 8 * i & 0xFF for i in range(16)] == model.counts
            left = [max(0, n - 1) for n in left]
            for e in range(4):
                if started[e]:
                    left[e] = rng.randrange(6)
            overflow = model.step(started, done, pushed, live)
            assert int(dut.overflow_o.value) == overflow
            if offer and pushed[offer[0]] is not None:
                offer = None
            seen["start"] += sum(started)
            seen["cmd stalled"] += any(c and not r for c, r in zip(can, ready, strict=True))
            seen["overflow"] += overflow != 0
            seen["max"] += max(model.counts) == LIMIT
        for e in range(4):  # engines finish before the queues are cleared
            if model.running[e] is not None:
                dut.run_i.value, dut.push_valid_i.value = 0, 0
                dut.done_i.value = 1 << e
                await RisingEdge(dut.clk_i)
    stalled = seen.pop("cmd stalled")
    assert (stalled > 0) == pattern.stalls
    assert seen["start"] > 300 and all(seen.values()), seen


@cocotb.test()
async def check_unstable_push(dut: Any) -> None:
    await reset(dut)
    dut.run_i.value, dut.push_valid_i.value = 1, 1
    for index in range(DEPTH + 3):
        dut.push_cmd_i.value = Command(index, 8, 0).bits
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_done_of_nothing(dut: Any) -> None:
    await reset(dut)
    dut.done_i.value = 4
    await RisingEdge(dut.clk_i)
    await RisingEdge(dut.clk_i)
