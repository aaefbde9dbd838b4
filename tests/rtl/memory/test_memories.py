"""The five on-chip memories hold what is written, a cycle later, and report port conflicts.

What comes in: random accesses. What goes out: the comparison with a dictionary per memory.
"""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import ReadOnly, RisingEdge

from accelsim.cosim.streams import reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import (
    CONFIGS,
    MATRIX,
    STORE,
    TABLE_WORDS,
    TABLES,
    VECTOR,
    Config,
)

CYCLES = 600


def run(module: str, check: str, config: str) -> None:
    sources = rtl(f"gen/{config}/npu_pkg.sv", "npu_ram.sv", f"{module}.sv")
    run_unit(module, sources, __name__, only=check, environment={"NPU_CONFIG": config},
             name=f"{module}-{config}")  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_activation_memory_holds_rows_and_reports_conflicts(config: str) -> None:
    run("npu_act_mem", "check_act", config)


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_accumulator_memory_holds_rows_and_reports_conflicts(config: str) -> None:
    run("npu_acc_mem", "check_acc", config)


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_weight_memory_holds_rows(config: str) -> None:
    run("npu_wgt_mem", "check_wgt", config)


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_parameter_memory_joins_four_beats_into_a_row(config: str) -> None:
    run("npu_par_mem", "check_par", config)


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_table_memory_gives_every_lane_the_word_it_asks_for(config: str) -> None:
    run("npu_tab_mem", "check_tab", config)


def config_under_test() -> Config:
    import os

    return CONFIGS[os.environ["NPU_CONFIG"]]


def pack(values: list[int], width: int) -> int:
    """Packed array, element 0 in the lowest bits."""
    return sum(value << (width * i) for i, value in enumerate(values))


def unpack(value: int, width: int, count: int) -> list[int]:
    return [value >> (width * i) & ((1 << width) - 1) for i in range(count)]


def some_rows(rng: random.Random, rows: int) -> list[int]:
    """A few rows, both ends among them, so that reads meet written rows often."""
    return [0, rows - 1, *(rng.randrange(rows) for _ in range(10))]


@cocotb.test()
async def check_act(dut: Any) -> None:
    config, rng = config_under_test(), seeded_rng("act")
    await reset(dut)
    rows, width = some_rows(rng, config.act_rows), 8 * config.lanes
    memory: dict[int, int] = {}
    expected: list[int | None] = [None] * 3
    conflicts = checked = 0
    size = config.act_bank_rows
    for _ in range(CYCLES):
        reads = [rng.choice(rows) if rng.random() < 0.4 else None for _ in range(3)]
        writes = [rng.choice(rows) if rng.random() < 0.5 else None for _ in range(2)]
        data = [rng.getrandbits(width) for _ in range(2)]
        dut.rd_en_i.value = pack([int(r is not None) for r in reads], 1)
        dut.rd_row_i.value = pack([r or 0 for r in reads], 16)
        dut.wr_en_i.value = pack([int(w is not None) for w in writes], 1)
        dut.wr_row_i.value = pack([w or 0 for w in writes], 16)
        dut.wr_data_i.value = pack(data, width)
        wanted = 0
        for users, engines in ((reads, (MATRIX, VECTOR, STORE)), (writes, (0, VECTOR))):
            for i, row in enumerate(users):
                others = [o // size for j, o in enumerate(users) if j != i and o is not None]
                if row is not None and row // size in others:
                    wanted |= 1 << engines[i]
        await ReadOnly()
        assert int(dut.conflict_o.value) == wanted
        got = unpack(int(dut.rd_data_o.value), width, 3)
        for value, want in zip(got, expected, strict=True):
            assert want is None or value == want
            checked += want is not None
        conflicts += wanted != 0
        expected = [None] * 3
        if not wanted:
            expected = [memory.get(r) if r is not None else None for r in reads]
        await RisingEdge(dut.clk_i)
        granted: set[int] = set()
        for row, value in zip(writes, data, strict=True):
            if row is not None and row // size not in granted:
                memory[row] = value
                granted.add(row // size)
    assert conflicts > 20 and checked > 50


@cocotb.test()
async def check_acc(dut: Any) -> None:
    config, rng = config_under_test(), seeded_rng("acc")
    await reset(dut)
    rows, width = some_rows(rng, config.acc_rows), 32 * config.lanes
    memory: dict[tuple[int, int], int] = {}
    expected: dict[str, int | None] = {}
    conflicts = checked = 0
    for _ in range(CYCLES):
        place = {port: (rng.getrandbits(1), rng.choice(rows)) for port in ("m_rd", "v_rd", "m_wr")}
        enabled = {port: rng.random() < 0.5 for port in place}
        data = rng.getrandbits(width)
        for port, (bank, row) in place.items():
            getattr(dut, f"{port}_en_i").value = int(enabled[port])
            getattr(dut, f"{port}_bank_i").value = bank
            getattr(dut, f"{port}_row_i").value = row
        dut.m_wr_data_i.value = data
        both = enabled["m_rd"] and enabled["v_rd"]
        conflict = both and place["m_rd"][0] == place["v_rd"][0]
        await ReadOnly()
        assert int(dut.conflict_o.value) == int(conflict)
        for port, want in expected.items():
            assert want is None or int(getattr(dut, f"{port}_data_o").value) == want
            checked += want is not None
        conflicts += conflict
        expected = {"m_rd": memory.get(place["m_rd"]) if enabled["m_rd"] else None}
        if enabled["v_rd"] and not conflict:
            expected["v_rd"] = memory.get(place["v_rd"])
        elif conflict:
            expected["v_rd"] = None
        await RisingEdge(dut.clk_i)
        if enabled["m_wr"]:
            memory[place["m_wr"]] = data
    assert conflicts > 20 and checked > 50


async def read_back(
    dut: Any, write_row: Any, rows: list[int], width: int, beats: int, lanes: int
) -> None:
    """Writes and reads at random; a row is `beats` writes."""
    rng = seeded_rng("rows")
    memory = {}
    for row in rows:
        for beat in range(beats):
            value = rng.getrandbits(width // beats)
            memory[row, beat] = value
            dut.wr_en_i.value = 1
            write_row.value = row * beats + beat
            dut.wr_data_i.value = value
            await RisingEdge(dut.clk_i)
    for _ in range(CYCLES):
        row, written, beat = rng.choice(rows), rng.choice(rows), rng.randrange(beats)
        value = rng.getrandbits(width // beats)
        dut.rd_en_i.value = 1
        dut.rd_row_i.value = row
        dut.wr_en_i.value = rng.getrandbits(1)
        write_row.value = written * beats + beat
        dut.wr_data_i.value = value
        want = [memory[row, b] for b in range(beats)]
        await RisingEdge(dut.clk_i)
        if dut.wr_en_i.value == 1:
            memory[written, beat] = value
        dut.rd_en_i.value = 0
        dut.wr_en_i.value = 0
        dut.rd_row_i.value = rng.choice(rows)
        await ReadOnly()
        assert int(dut.rd_data_o.value) == pack(want, width // beats)
        await RisingEdge(dut.clk_i)


async def start(dut: Any) -> None:
    from accelsim.cosim.streams import start_clock

    dut.rd_en_i.value = 0
    dut.wr_en_i.value = 0
    start_clock(dut)
    await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_wgt(dut: Any) -> None:
    config = config_under_test()
    await start(dut)
    rows = some_rows(seeded_rng("wgt"), config.wgt_rows)
    await read_back(dut, dut.wr_row_i, rows, 8 * config.lanes, 1, config.lanes)


@cocotb.test()
async def check_par(dut: Any) -> None:
    config = config_under_test()
    await start(dut)
    rows = some_rows(seeded_rng("par"), config.par_rows)
    await read_back(dut, dut.wr_beat_i, rows, 32 * config.lanes, 4, config.lanes)


@cocotb.test()
async def check_tab(dut: Any) -> None:
    """Every word of both tables, and words that are overwritten while others are read."""
    config, rng = config_under_test(), seeded_rng("tab")
    await start(dut)
    words, per_beat = TABLES * TABLE_WORDS, config.lanes // 4
    table = [rng.getrandbits(32) for _ in range(words)]
    for beat in range(words // per_beat):
        await write_words(dut, beat, table[beat * per_beat : (beat + 1) * per_beat])
    dut.wr_en_i.value = 0
    for cycle in range(CYCLES):
        which = rng.randrange(TABLES)
        numbers = [(cycle + lane * 37) % TABLE_WORDS for lane in range(config.lanes)]
        dut.rd_en_i.value = 1
        dut.rd_table_i.value = which
        dut.rd_word_i.value = pack(numbers, 8)
        beat = rng.randrange(words // per_beat)
        fresh = [rng.getrandbits(32) for _ in range(per_beat)]
        want = [table[which * TABLE_WORDS + number] for number in numbers]
        if rng.random() < 0.5:
            await write_words(dut, beat, fresh)
            table[beat * per_beat : (beat + 1) * per_beat] = fresh
        else:
            await RisingEdge(dut.clk_i)
        dut.wr_en_i.value = 0
        dut.rd_en_i.value = 0
        dut.rd_table_i.value = rng.randrange(TABLES)
        dut.rd_word_i.value = rng.getrandbits(8 * config.lanes)
        for _ in range(rng.randrange(1, 3)):  # words stay until the next read
            await ReadOnly()
            assert unpack(int(dut.rd_data_o.value), 32, config.lanes) == want
            await RisingEdge(dut.clk_i)


async def write_words(dut: Any, beat: int, words: list[int]) -> None:
    dut.wr_en_i.value = 1
    dut.wr_beat_i.value = beat
    dut.wr_data_i.value = pack(words, 32)
    await RisingEdge(dut.clk_i)
