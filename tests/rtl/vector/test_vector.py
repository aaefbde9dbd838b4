"""The vector engine writes what NumPy computes, in exactly the cycles of the instruction table."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from accelsim.cosim.streams import reset, withdraw
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS
from accelsim.spec.isa import BY_NAME
from tests.rtl.float.scale_oracle import INTEGER_MODES
from tests.rtl.vector.vector_edges import edge_drain, edge_memories
from tests.rtl.vector.vector_jobs import NAMES, fill_parameters, random_job, random_memories
from tests.rtl.vector.vector_oracle import Memories, Values, rows_written

PARTS = (
    "npu_fp_from_int.sv",
    "npu_fp_mul.sv",
    "npu_fp_add.sv",
    "npu_fp_round.sv",
    "npu_vector_pkg.sv",
    "npu_scale_raise.sv",
    "npu_scale_multiply.sv",
    "npu_scale_round.sv",
    "npu_vector_decode.sv",
    "npu_vector_walk.sv",
    "npu_vector_reduce.sv",
    "npu_requant.sv",
    "npu_vector.sv",
)
JOBS = {"edge8": 60, "base16": 30, "wide32": 30}


def run_bench(config: str, only: str, seed: int, **kw: Any) -> None:
    sources = rtl(f"gen/{config}/npu_pkg.sv", *PARTS)
    run_unit("npu_vector", sources, __name__, only=only, seed=seed, name=f"npu_vector-{config}",
             environment={"VECTOR_CONFIG": config}, **kw)  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", list(CONFIGS))
def test_vector_engine_equals_numpy(config: str, seed: int) -> None:
    run_bench(config, "check_random_jobs", seed)


@pytest.mark.rtl
def test_drain_of_edge_words_equals_exact_arithmetic_at_every_shift(seed: int) -> None:
    run_bench("edge8", "check_edge_words", seed)


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

    def answer(self, port: str, rows: NDArray[Any], row_bytes: int) -> None:
        dut = self.dut
        if getattr(dut, f"{port}_rd_en_o").value == 1:
            data = rows[int(getattr(dut, f"{port}_rd_row_o").value)].tobytes()
        else:
            data = self.rng.bytes(row_bytes)
        getattr(dut, f"{port}_rd_data_i").value = int.from_bytes(data, "little")

    async def serve(self) -> None:
        dut, lanes = self.dut, self.memories.act.shape[1]
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            self.answer("act", self.memories.act, lanes)
            bank = int(dut.acc_rd_bank_o.value) if dut.acc_rd_en_o.value == 1 else 0
            self.answer("acc", self.memories.acc[bank], 4 * lanes)
            self.answer("par", self.memories.par, 4 * lanes)
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
    while True:
        await RisingEdge(dut.clk_i)
        if dut.done_o.value == 1:
            break
        assert dut.cmd_ready_o.value == 0, "ready while busy"
    return memory.cycle - start


async def compare(dut: Any, memory: Memory, name: str, v: Values, bits: int, gap: int) -> Any:
    """Runs a job: rows, their order and the duration are right; returns the rows' elements."""
    config = CONFIGS[os.environ["VECTOR_CONFIG"]]
    memory.writes.clear()
    cycles = await run_job(dut, memory, bits, gap)
    expected = rows_written(name, v, memory.memories)
    assert len(memory.writes) == v["blocks"] * v["out_h"] * v["out_w"]
    assert memory.writes == expected, f"{name} {v}"
    duration = BY_NAME[name].duration
    assert duration is not None and cycles == duration(v, config), f"{name} {v}"
    assert memory.last_write_cycle <= memory.cycle
    return np.frombuffer(b"".join(row for _, row in expected), dtype=np.int8)


@cocotb.test()
async def check_random_jobs(dut: Any) -> None:
    config = CONFIGS[os.environ["VECTOR_CONFIG"]]
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    await reset(dut)
    memory = Memory(dut, random_memories(rng, config), rng)
    between: dict[str, int] = {}
    written = {"low": 0, "high": 0}
    for count in range(JOBS[config.name]):
        for name in NAMES:
            values, instruction = random_job(rng, config, name, count)
            fill_parameters(rng, config, name, values, memory.memories.par)
            gap = int(rng.integers(0, 3)) * (count % 2)
            out = await compare(dut, memory, name, values, instruction, gap)
            written["low"] += int((out == values["clamp_min"]).sum())
            written["high"] += int((out == values["clamp_max"]).sum())
            middle = (out > values["clamp_min"]) & (out < values["clamp_max"])
            scale = values["mode"] if values.get("sum", 1) else "maximum"
            kind = f"{name} {scale}"
            between[kind] = between.get(kind, 0) + int(middle.sum())
    assert min(written.values()) > 500, f"too few of one kind: {written}"
    assert len(between) == 3 * 5 + 3 + 1, f"a mode is missing: {between}"
    assert min(between.values()) > 0, f"too few of one kind: {between}"


@cocotb.test()
async def check_edge_words(dut: Any) -> None:
    config = CONFIGS[os.environ["VECTOR_CONFIG"]]
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    await reset(dut)
    memory = Memory(dut, random_memories(rng, config), rng)
    between = 0
    for mode in INTEGER_MODES:
        for shift in range(-32, 32):
            edge_memories(rng, memory.memories, shift)
            values, instruction = edge_drain(rng, config, mode)
            out = await compare(dut, memory, "drain", values, instruction, 0)
            between += int(((out > -128) & (out < 127) & (out != 0)).sum())
    assert between > 10000, f"too few results within int8: {between}"


@cocotb.test()
async def check_broken_command(dut: Any) -> None:
    config = CONFIGS[os.environ["VECTOR_CONFIG"]]
    await reset(dut)
    _, instruction = random_job(np.random.default_rng(1), config, "add", 0)
    dut.cmd_valid_i.value = 1
    for word in range(4):
        dut.cmd_i.value = instruction | word << 512
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_withdrawn(dut: Any) -> None:
    config = CONFIGS[os.environ["VECTOR_CONFIG"]]
    await reset(dut)
    _, instruction = random_job(np.random.default_rng(1), config, "add", 0)
    await withdraw(dut, instruction)
