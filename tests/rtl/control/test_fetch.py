"""Fetch asks for instructions in order, never for too many, and hands them on unchanged."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import Pattern, StreamMonitor, reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS

COUNT = 60
BASE = 0x12_3456_7FC0


def run(config: str, seed: int, only: str, expect_failure: str | None = None) -> None:
    sources = rtl(f"gen/{config}/npu_pkg.sv", "npu_fetch.sv")
    run_unit("npu_fetch", sources, __name__, seed=seed, only=only, expect_failure=expect_failure,
             environment={"NPU_CONFIG": config}, name=f"fetch-{config}-{only}")  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_instructions_arrive_in_order_and_within_the_depth(config: str, seed: int) -> None:
    run(config, seed, "check_order")


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("check_unasked", "npu_fetch: read data that was not asked for"),
        ("check_address", "npu_fetch: address changed while valid and not ready"),
    ],
)
def test_protocol_violations_are_seen_by_the_assertions(
    check: str, message: str, seed: int
) -> None:
    run("edge8", seed, check, message)


class Bus:
    """Accepts addresses and answers them in order; counts what the module asks for."""

    def __init__(self, dut: Any, pattern: Pattern, programs: dict[int, tuple[int, bool]]) -> None:
        self.dut, self.pattern, self.programs = dut, pattern, programs
        self.lanes = CONFIGS[os.environ["NPU_CONFIG"]].lanes
        self.rng = seeded_rng(f"bus {pattern}")
        self.cycle = self.stalled = 0
        self.asked: list[tuple[int, int]] = []  # (cycle, address)
        self.finished: list[int] = []  # cycle of the last beat of each instruction
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut, waiting, beat = self.dut, list[int](), 0
        while True:
            ready = not (self.pattern.stalls and self.rng.random() < 0.5)
            show = bool(waiting) and not (self.pattern.idles and self.rng.random() < 0.5)
            dut.ar_ready_i.value, dut.r_valid_i.value = int(ready), int(show)
            last = beat == 64 // self.lanes - 1
            if show:
                word, bad = self.programs[waiting[0]]
                part = word >> 8 * self.lanes * beat & ((1 << 8 * self.lanes) - 1)
                dut.r_data_i.value = part
                dut.r_last_i.value = int(last)
                dut.r_error_i.value = int(bad and beat == 1)
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if show:
                beat = 0 if last else beat + 1
                if last:
                    waiting.pop(0)
                    self.finished.append(self.cycle)
            if dut.ar_valid_o.value == 1 and ready:
                self.asked.append((self.cycle, int(dut.ar_addr_o.value)))
                waiting.append(self.asked[-1][1])
            self.stalled += dut.ar_valid_o.value == 1 and not ready


async def start(dut: Any, length: int) -> None:
    dut.clear_i.value = 1
    await RisingEdge(dut.clk_i)
    dut.clear_i.value = 0
    dut.base_i.value, dut.length_i.value, dut.run_i.value = BASE, length, 1


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_order(dut: Any, pattern: Pattern) -> None:
    depth = CONFIGS[os.environ["NPU_CONFIG"]].fetch_depth
    rng = seeded_rng("program")
    program = [(rng.getrandbits(512), rng.random() < 0.2) for _ in range(COUNT)]
    await reset(dut)
    dut.ar_ready_i.value = 0
    bus = Bus(dut, pattern, {BASE + 64 * i: word for i, word in enumerate(program)})
    for _ in range(2):
        await start(dut, COUNT)
        bus.asked.clear()
        bus.finished.clear()
        sink = StreamMonitor(dut, "instr_valid_o", "instr_ready_i",
                             ["instr_o", "instr_error_o"], pattern)  # fmt: skip
        taken: list[int] = []
        for word, bad in program:
            got = await sink.receive(1)
            taken.append(bus.cycle)
            assert got == [{"instr_o": word, "instr_error_o": int(bad)}]
        assert [at for _, at in bus.asked] == [BASE + 64 * i for i in range(COUNT)]
        for i in range(depth, COUNT):  # a place that is freed in cycle t is asked for from t+1 on
            assert bus.asked[i][0] > taken[i - depth]
        if pattern is Pattern.NONE:
            assert all(t == f + 1 for t, f in zip(taken, bus.finished, strict=True))
            assert [cycle for cycle, _ in bus.asked[:depth]] == list(
                range(bus.asked[0][0], bus.asked[0][0] + depth)
            )
        sink.finish()
        sink.task.cancel()
        await RisingEdge(dut.clk_i)
        assert dut.quiet_o.value == 1 and dut.ar_valid_o.value == 0
        dut.run_i.value = 0
    assert (bus.stalled > 0) == pattern.stalls


@cocotb.test()
async def check_unasked(dut: Any) -> None:
    await reset(dut)
    dut.r_valid_i.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_address(dut: Any) -> None:
    await reset(dut)
    await start(dut, 3)
    for cycle in range(4):
        await RisingEdge(dut.clk_i)
        dut.base_i.value = cycle << 12  # the host must not move the program during a run
