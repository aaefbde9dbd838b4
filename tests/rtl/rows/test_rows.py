"""The row engine writes what Python's integers give, in exactly the cycles of the table."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import reset, withdraw
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS
from accelsim.spec.isa import BY_NAME
from tests.rtl.rows.rows_edges import edges
from tests.rtl.rows.rows_oracle import (
    Memories,
    encoded,
    random_job,
    random_memories,
    random_tables,
    rows_written,
)

PARTS = (
    "npu_rows_pkg.sv",
    "npu_rows_decode.sv",
    "npu_rows_walk.sv",
    "npu_rows_reduce.sv",
    "npu_rows_reciprocal.sv",
    "npu_rows_root.sv",
    "npu_rows_table.sv",
    "npu_rows_norm.sv",
    "npu_rows.sv",
)
JOBS = {"edge8": 120, "base16": 60, "wide32": 30}


def run_bench(config: str, only: str, seed: int, **kw: Any) -> None:
    sources = rtl(f"gen/{config}/npu_pkg.sv", *PARTS)
    label, environment = f"npu_rows-{config}-{only}", {"ROWS_CONFIG": config}
    run_unit("npu_rows", sources, __name__, only=f"{only}$", seed=seed, name=label,
             environment=environment, **kw)  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", list(CONFIGS))
@pytest.mark.parametrize("name", ["lookup", "softmax", "layernorm"])
def test_row_engine_equals_integers(config: str, name: str, seed: int) -> None:
    run_bench(config, f"check_{name}", seed)


@pytest.mark.rtl
@pytest.mark.parametrize("config", ["edge8", "wide32"])
@pytest.mark.parametrize("name", ["softmax", "layernorm"])
def test_row_engine_equals_integers_at_the_ends_of_its_words(
    config: str, name: str, seed: int
) -> None:
    run_bench(config, f"check_{name}_edges", seed)


@pytest.mark.rtl
def test_assertion_on_a_changed_command_fires(seed: int) -> None:
    run_bench("edge8", "check_broken_command", seed, expect_failure="command changed while it")


@pytest.mark.rtl
def test_a_stop_or_a_reset_may_withdraw_a_command(seed: int) -> None:
    run_bench("edge8", "check_withdrawn", seed)


class Memory:
    """Answers reads one cycle later, with noise where nothing was asked, and notes writes."""

    def __init__(self, dut: Any, memories: Memories, rng: np.random.Generator) -> None:
        self.dut, self.memories, self.rng = dut, memories, rng
        self.cycle = 0
        self.writes: list[tuple[int, bytes]] = []
        self.last_write_cycle = -1
        cocotb.start_soon(self.serve())

    def row(self, port: str) -> bytes:
        rows = getattr(self.memories, port)
        if getattr(self.dut, f"{port}_rd_en_o").value != 1:
            return self.rng.bytes(rows[0].nbytes)
        return bytes(rows[int(getattr(self.dut, f"{port}_rd_row_o").value)].tobytes())

    def words(self) -> bytes:
        lanes = self.memories.act.shape[1]
        if self.dut.tab_rd_en_o.value != 1:
            return self.rng.bytes(4 * lanes)
        numbers = int(self.dut.tab_rd_word_o.value).to_bytes(lanes, "little")
        table = self.memories.tab[int(self.dut.tab_rd_table_o.value)]
        return bytes(table[np.frombuffer(numbers, np.uint8)].tobytes())

    async def serve(self) -> None:
        dut, lanes = self.dut, self.memories.act.shape[1]
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            dut.act_rd_data_i.value = int.from_bytes(self.row("act"), "little")
            dut.par_rd_data_i.value = int.from_bytes(self.row("par"), "little")
            dut.tab_rd_data_i.value = int.from_bytes(self.words(), "little")
            if dut.act_wr_en_o.value == 1:
                data = int(dut.act_wr_data_o.value).to_bytes(lanes, "little")
                self.writes.append((int(dut.act_wr_row_o.value), data))
                self.last_write_cycle = self.cycle


async def run_job(dut: Any, memory: Memory, instruction: int, gap: int) -> int:
    """Presents one command after `gap` idle cycles; returns its duration in cycles."""
    for _ in range(gap):
        await RisingEdge(dut.clk_i)
    dut.cmd_i.value = instruction
    dut.cmd_valid_i.value = 1
    await RisingEdge(dut.clk_i)
    assert dut.cmd_ready_o.value == 1, "the engine is ready in the cycle after done"
    dut.cmd_valid_i.value = 0
    dut.cmd_i.value = int.from_bytes(memory.rng.bytes(68), "little")
    start = memory.cycle
    for _ in range(100_000):
        await RisingEdge(dut.clk_i)
        if dut.done_o.value == 1:
            return memory.cycle - start
        assert dut.cmd_ready_o.value == 0, "ready while busy"
    raise AssertionError("no done_o")


async def check_jobs(dut: Any, name: str) -> None:
    config = CONFIGS[os.environ["ROWS_CONFIG"]]
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    memory = Memory(dut, random_memories(rng, config), rng)
    await reset(dut)
    seen: set[int] = set()
    for count in range(JOBS[config.name]):
        memory.memories.tab[:] = random_tables(rng)
        values, instruction = random_job(rng, config, name)
        memory.writes.clear()
        cycles = await run_job(dut, memory, instruction, int(rng.integers(0, 3)) * (count % 2))
        expected = rows_written(name, values, memory.memories)
        assert memory.writes == expected, f"{name} {values}"
        duration = BY_NAME[name].duration
        assert duration is not None and cycles == duration(values, config), f"{name} {values}"
        assert memory.last_write_cycle <= memory.cycle
        seen |= set(b"".join(row for _, row in expected))
    assert len(seen) > (50 if name == "softmax" else 200), f"only {len(seen)} different bytes"


@cocotb.test()
async def check_lookup(dut: Any) -> None:
    await check_jobs(dut, "lookup")


@cocotb.test()
async def check_softmax(dut: Any) -> None:
    await check_jobs(dut, "softmax")


@cocotb.test()
async def check_layernorm(dut: Any) -> None:
    await check_jobs(dut, "layernorm")


async def check_edges(dut: Any, name: str) -> None:
    config = CONFIGS[os.environ["ROWS_CONFIG"]]
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    memory = Memory(dut, random_memories(rng, config), rng)
    await reset(dut)
    for values, memories in edges(config, name):
        memory.memories = memories
        memory.writes.clear()
        instruction = encoded(name, values, config)
        assert instruction, f"{values} is not legal"
        await run_job(dut, memory, instruction, 0)
        assert memory.writes == rows_written(name, values, memories), f"{name} {values}"


@cocotb.test()
async def check_softmax_edges(dut: Any) -> None:
    await check_edges(dut, "softmax")


@cocotb.test()
async def check_layernorm_edges(dut: Any) -> None:
    await check_edges(dut, "layernorm")


@cocotb.test()
async def check_broken_command(dut: Any) -> None:
    config = CONFIGS[os.environ["ROWS_CONFIG"]]
    await reset(dut)
    _, instruction = random_job(np.random.default_rng(1), config, "softmax")
    dut.cmd_valid_i.value = 1
    for word in range(4):
        dut.cmd_i.value = instruction | word << 512
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_withdrawn(dut: Any) -> None:
    config = CONFIGS[os.environ["ROWS_CONFIG"]]
    await reset(dut)
    _, instruction = random_job(np.random.default_rng(1), config, "softmax")
    await withdraw(dut, instruction)
