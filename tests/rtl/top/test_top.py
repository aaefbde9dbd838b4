"""Programs through the whole NPU: results, every error code, runs after runs, and soft reset."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from accelsim import sources
from accelsim.cosim.streams import Pattern, reset, seeded_rng
from accelsim.cosim.unit import run_unit
from accelsim.spec.config import CONFIGS, LOAD, MATRIX, STORE, VECTOR, Config
from accelsim.spec.registers import DISPATCH_ENGINE, ErrorCode
from tests.rtl.top.host import Host, Memory, Step, int8

PROGRAM, WEIGHTS, INPUT, OUTPUT = 0x1000, 0x4000, 0x8000, 0xC000
BASES = {1: (WEIGHTS, 0x4000), 2: (INPUT, 0x4000), 3: (OUTPUT, 0x2000)}
BUSY, DONE, ERROR, RESETTING = 1, 2, 4, 8
PIXELS = 6


def run(config: str, seed: int, only: str) -> None:
    run_unit("npu_top", sources.rtl_files(config), __name__, seed=seed, only=only,
             name=f"top-{config}-{only}", environment={"NPU_CONFIG": config})  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_matrix_product_comes_back_under_every_axi_pattern(config: str, seed: int) -> None:
    run(config, seed, "check_product")


@pytest.mark.rtl
@pytest.mark.parametrize("config", ["edge8", "base16"])
def test_every_error_code_is_reported_with_index_and_engine(config: str, seed: int) -> None:
    run(config, seed, "check_error")


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_a_table_and_a_product_of_two_tensors_come_back(config: str, seed: int) -> None:
    run(config, seed, "check_table")


@pytest.mark.rtl
def test_soft_reset_drains_and_clears(seed: int) -> None:
    run("edge8", seed, "check_soft_reset")


def to(*engines: int) -> int:
    return sum(1 << e for e in engines)


def product(config: Config) -> list[Step]:
    """acc = input · weights, plus bias, times multiplier; PIXELS rows of LANES."""
    lanes = config.lanes
    out = config.act_bank_rows  # bank 1
    tail = {"in_tail": lanes, "out_tail": lanes}
    return [
        ("load", {"base_reg": 2, "count0": PIXELS, "local_stride0": 1}),
        ("load", {"memory": 1, "base_reg": 1, "count0": lanes, "local_stride0": 1,
                  "give": to(MATRIX)}),
        ("load", {"memory": 2, "base_reg": 1, "dram_offset": lanes, "count0": 8,
                  "local_stride0": 1, "give": to(VECTOR)}),
        ("conv", {"in_h": 1, "in_w": PIXELS, "in_col_stride": 1, "out_w": PIXELS,
                  "input_zero_point": 3, "take": to(LOAD), "give": to(VECTOR), **tail}),
        ("drain", {"out_w": PIXELS, "tail": lanes, "dst_base": out, "dst_col_stride": 1,
                   "zero_point": 5, "clamp_min": -100, "clamp_max": 120,
                   "take": to(LOAD, MATRIX), "give": to(STORE)}),
        ("store", {"base_reg": 3, "count0": PIXELS, "local_base": out, "local_stride0": 1,
                   "take": to(VECTOR)}),
        ("end", {}),
    ]  # fmt: skip


def fill(memory: Memory, config: Config, seed: int) -> np.ndarray:
    """Random operands in memory; returns the expected (PIXELS, LANES) int8 result."""
    rng, lanes = np.random.default_rng(seed), config.lanes
    x = rng.integers(-128, 128, (PIXELS, lanes)).astype(np.int8)
    w = rng.integers(-128, 128, (lanes, lanes)).astype(np.int8)
    bias = rng.integers(-5000, 5000, lanes).astype(np.int32)
    multiplier = rng.uniform(0.0005, 0.01, lanes).astype(np.float32)
    weights = w.tobytes() + bias.tobytes() + multiplier.tobytes()
    for at, raw in ((INPUT, x.tobytes()), (WEIGHTS, weights)):
        memory.data[at : at + len(raw)] = raw
    acc = (x.astype(np.int64) - 3) @ w.astype(np.int64) + bias
    scaled = np.rint(acc.astype(np.float32) * multiplier).astype(np.int64) + 5
    result: np.ndarray = np.clip(scaled, -100, 120).astype(np.int8)
    return result


async def bring_up(dut: Any, pattern: Pattern = Pattern.NONE) -> tuple[Host, Memory, Config]:
    config = CONFIGS[os.environ["NPU_CONFIG"]]
    await reset(dut)
    memory = Memory(dut, config, pattern, seeded_rng(str(pattern)))
    return Host(dut, config, memory), memory, config


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_product(dut: Any, pattern: Pattern) -> None:
    host, memory, config = await bring_up(dut, pattern)
    assert await host.get("ID") == 0x4E505531
    assert await host.get("LANES") == config.lanes
    await host.load_program(product(config), PROGRAM, BASES)
    for round_number in range(4):  # runs follow each other without reset
        expected = fill(memory, config, round_number)
        assert await host.run() == DONE
        assert (int8(memory, OUTPUT, expected.shape) == expected).all()
        assert [await host.get("SEMAPHORE", i) for i in range(16)] == [0] * 16
        assert await host.get("CYCLES_HI") == 0
        assert 60 < await host.get("CYCLES_LO") < 2000
    fetched = [at for identity, at in memory.addresses if identity == 0]
    assert fetched == [PROGRAM + 64 * i for i in range(7)] * 4
    assert all(memory.stalled.values()) == pattern.stalls


def swish(config: Config) -> list[Step]:
    """x · table(x), rounded half to even; the table is the second one of table memory."""
    lanes, half = config.lanes, config.tab_beats // 2
    size = {"out_w": PIXELS, "tail": lanes, "dst_col_stride": 1}
    looked_up, out = config.act_bank_rows, 2 * config.act_bank_rows
    return [
        ("load", {"base_reg": 2, "count0": PIXELS, "local_stride0": 1}),
        ("load", {"memory": 3, "base_reg": 1, "count0": half, "local_base": half,
                  "local_stride0": 1}),
        ("load", {"memory": 2, "base_reg": 1, "dram_offset": half, "count0": 12,
                  "local_stride0": 1, "give": to(VECTOR)}),
        ("lookup", {**size, "in_col_stride": 1, "dst_base": looked_up, "lut": 1,
                    "take": to(LOAD)}),
        ("binary", {**size, "a_col_stride": 1, "b_base": looked_up, "b_col_stride": 1, "mode": 3,
                    "dst_base": out, "clamp_min": -128, "clamp_max": 127, "give": to(STORE)}),
        ("store", {"base_reg": 3, "count0": PIXELS, "local_base": out, "local_stride0": 1,
                   "take": to(VECTOR)}),
        ("end", {}),
    ]  # fmt: skip


@cocotb.test()
@cocotb.parametrize(pattern=[Pattern.NONE, Pattern.BOTH])
async def check_table(dut: Any, pattern: Pattern) -> None:
    host, memory, config = await bring_up(dut, pattern)
    await host.load_program(swish(config), PROGRAM, BASES)
    rng, lanes = np.random.default_rng(5), config.lanes
    x = rng.integers(-128, 128, (PIXELS, lanes)).astype(np.int8)
    table = rng.integers(-(1 << 31), 1 << 31, 256).astype(np.int32)  # the low byte counts
    words = np.stack([np.full(lanes, v) for v in (0, 1 << 30, -6)]).astype(np.int32)
    for at, raw in ((INPUT, x.tobytes()), (WEIGHTS, table.tobytes() + words.tobytes())):
        memory.data[at : at + len(raw)] = raw
    assert await host.run() == DONE
    factor = table[x.astype(int) + 128].astype(np.int8).astype(float)
    expected = np.clip(np.rint(x * factor / 128), -128, 127)  # exact in float64, half to even
    assert (int8(memory, OUTPUT, x.shape) == expected).all()


# What to change in the program, and what must be reported.
Case = tuple[str, ErrorCode, int, int]
CASES: tuple[Case, ...] = (
    ("opcode", ErrorCode.OPCODE, 3, DISPATCH_ENGINE),
    ("undeclared", ErrorCode.OPCODE, 0, DISPATCH_ENGINE),
    ("field", ErrorCode.FIELD, 4, DISPATCH_ENGINE),
    ("extent", ErrorCode.EXTENT, 5, DISPATCH_ENGINE),
    ("dram_extent", ErrorCode.DRAM_EXTENT, 0, DISPATCH_ENGINE),
    ("bus_read", ErrorCode.BUS_READ, 0, LOAD),
    ("bus_write", ErrorCode.BUS_WRITE, 5, STORE),
    ("bus_fetch", ErrorCode.BUS_FETCH, 4, DISPATCH_ENGINE),
    ("contract", ErrorCode.CONTRACT, 0, DISPATCH_ENGINE),
    ("no_end", ErrorCode.NO_END, 6, DISPATCH_ENGINE),
    ("empty", ErrorCode.NO_END, 0, DISPATCH_ENGINE),
    ("semaphore", ErrorCode.SEMAPHORE, 1, LOAD),
    ("bank", ErrorCode.BANK, 3, MATRIX),
    ("deadlock", ErrorCode.WATCHDOG, 3, MATRIX),
)


async def spoil(host: Host, memory: Memory, kind: str, steps: list[Step | int]) -> None:
    """Changes program, registers or memory so that the error comes up."""
    changes: dict[str, tuple[int, dict[str, int]]] = {
        "deadlock": (3, {"take": to(LOAD, STORE)}),
        "extent": (5, {"local_base": host.config.act_rows - PIXELS + 1}),
    }
    if kind in changes:
        index, fields = changes[kind]
        name, old = steps[index]  # type: ignore[misc]
        steps[index] = (name, old | fields)
    if kind == "opcode":
        steps[3] = 0xEE
    if kind == "field":
        steps[4] = 4  # a conv of zeros
    if kind == "no_end":
        steps.pop()
    if kind == "empty":
        steps.clear()
    if kind == "bank":  # a drain of the bank that conv fills, without waiting for it
        lanes = host.config.lanes
        many = {"in_h": 1, "in_w": 1, "out_w": 40, "out_tail": lanes, "in_tail": lanes}
        steps[3] = ("conv", many | {"accumulate": 1, "take": to(LOAD)})
        steps[4] = ("drain", {"out_w": 40, "tail": lanes, "dst_base": 200, "take": to(LOAD)})
    await host.load_program(steps, PROGRAM, BASES)
    if kind == "undeclared":
        await host.set("PROGRAM_OPCODES", 0)
        await host.set("PROGRAM_HASH_LO", 0)
        await host.set("PROGRAM_HASH_HI", 0)
    if kind == "dram_extent":
        await host.set("SIZE", PIXELS * host.config.lanes - 1, 2)
    if kind == "contract":
        await host.set("PROGRAM_HASH_HI", 1 ^ await host.get("PROGRAM_HASH_HI"))
    if kind == "semaphore":
        await host.set("PRESET", 255, LOAD * 4 + MATRIX)
        await host.set("PRESET", 1, LOAD * 4 + VECTOR)
    await host.set("WATCHDOG", 400 if kind == "deadlock" else 0)
    pages = {"bus_read": INPUT, "bus_write": OUTPUT, "bus_fetch": PROGRAM + 4 * 64}
    memory.bad_pages = {pages[kind] >> 8} if kind in pages else set()


@cocotb.test()
@cocotb.parametrize(pattern=[Pattern.NONE, Pattern.BOTH])
async def check_error(dut: Any, pattern: Pattern) -> None:
    host, memory, config = await bring_up(dut, pattern)
    for kind, code, index, engine in CASES:
        steps: list[Step | int] = list(product(config))
        if kind == "semaphore":  # conv must not take a token before the load gives one
            steps[3] = ("conv", {**product(config)[3][1], "take": to(STORE)})
            steps.insert(3, ("store", {"base_reg": 3, "take": to(VECTOR)}))
        fill(memory, config, 1)
        await spoil(host, memory, kind, steps)
        assert await host.run() == ERROR, kind
        got = [await host.get(f"ERROR_{name}") for name in ("CODE", "INDEX", "ENGINE")]
        assert got == [code, index, engine], f"{kind}: {got}"
        cycles = await host.get("CYCLES_LO")
        assert kind != "contract" or cycles == 1
        assert kind != "deadlock" or cycles == 401
        memory.bad_pages = set()
        for number in range(16):
            await host.set("PRESET", 0, number)
        await host.set("WATCHDOG", 0)
        await host.load_program(product(config), PROGRAM, BASES)
        expected = fill(memory, config, 2)
        assert await host.run() == DONE, f"after {kind}"
        assert (int8(memory, OUTPUT, expected.shape) == expected).all(), f"after {kind}"
        assert await host.get("ERROR_CODE") == 0


@cocotb.test()
async def check_soft_reset(dut: Any) -> None:
    host, memory, config = await bring_up(dut)
    memory.latency = 60
    for wait in (0, 1, 20, 70, 75, 90, 140, 200, 400):
        fill(memory, config, 3)
        await host.load_program(product(config), PROGRAM, BASES)
        await host.set("PRESET", 7, STORE * 4 + LOAD)
        await host.set("CTRL", 1)
        await ClockCycles(dut.clk_i, wait)
        await host.set("CTRL", 2)
        while await host.get("STATUS") & RESETTING:
            pass
        assert not memory.reads and not memory.responses and not memory.writes
        assert await host.get("STATUS") == 0
        for name in ("PROGRAM_LENGTH", "BASE_LO", "IRQ_ENABLE", "IRQ_STATUS", "CYCLES_LO"):
            assert await host.get(name) == 0
        assert [await host.get("SEMAPHORE", i) for i in range(16)] == [0] * 16
        await RisingEdge(dut.clk_i)
        await host.load_program(product(config), PROGRAM, BASES)
        expected = fill(memory, config, 4)
        assert await host.run() == DONE
        assert (int8(memory, OUTPUT, expected.shape) == expected).all()
