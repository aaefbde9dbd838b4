"""The matrix engine accumulates what the instruction table says, in exactly the stated cycles."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import Pattern, reset, seeded_rng, withdraw
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.encoding import check, encode
from accelsim.spec.isa import BY_NAME
from tests.rtl.matrix import matrix_oracle

MODULES = ("pkg", "walk", "weights", "mac", "depthwise", "accumulate")
COUNTS = {"edge8": 300, "base16": 120, "wide32": 30}  # instructions


def run(config: str, seed: int, only: str, expect_failure: str | None = None) -> None:
    sources = (
        *rtl(f"gen/{config}/npu_pkg.sv", "npu_ram.sv", "npu_act_mem.sv", "npu_wgt_mem.sv"),
        *rtl("npu_acc_mem.sv", *(f"npu_matrix_{m}.sv" for m in MODULES), "npu_matrix.sv"),
        Path(__file__).parent / "matrix_bench.sv",
    )
    run_unit(
        "matrix_bench",
        sources,
        __name__,
        seed=seed,
        only=only,
        name=f"matrix-{config}-{only}",
        environment={"NPU_CONFIG": config},
        expect_failure=expect_failure,
    )


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS)
def test_random_instructions_accumulate_exactly_in_the_stated_cycles(
    config: str, seed: int
) -> None:
    run(config, seed, "check_random")


@pytest.mark.rtl
def test_changed_command_while_waiting_is_seen_by_the_assertion(seed: int) -> None:
    run("edge8", seed, "check_unstable", "npu_matrix: command changed while it")


@pytest.mark.rtl
def test_a_stop_or_a_reset_may_withdraw_a_command(seed: int) -> None:
    run("edge8", seed, "check_withdrawn")


def window(rng: random.Random, config: Config) -> dict[str, int]:
    """Fields of a random input window and of the zero points."""
    in_h, in_w = rng.randint(1, 7), rng.randint(1, 7)
    return {
        "in_h": in_h,
        "in_w": in_w,
        "origin_h": rng.randint(-3, 2),
        "origin_w": rng.randint(-3, 2),
        "stride_h": rng.choice([1, 1, 2, 3]),
        "stride_w": rng.choice([1, 1, 2, 3, 4]),
        "dilation_h": rng.choice([1, 1, 2]),
        "dilation_w": rng.choice([1, 1, 2, 3]),
        "kernel_h": rng.randint(1, 3),
        "out_h": rng.randint(1, 5),
        "out_w": rng.randint(1, 5),
        "acc_bank": rng.getrandbits(1),
        "accumulate": rng.getrandbits(1),
        "input_zero_point": rng.choice([-128, 127, rng.randint(-128, 127)]),
        "weight_zero_point": rng.choice([0, -128, 127, rng.randint(-128, 127)]),
    }


def place(rng: random.Random, v: dict[str, int], blocks: int, config: Config) -> None:
    """Strides in n, h, w, c order or channel blocks outermost, at a random base."""
    if rng.random() < 0.5:
        v["in_block_stride"], v["in_col_stride"] = 1, blocks
        v["in_row_stride"] = blocks * v["in_w"] + rng.randint(0, 2)
    else:
        v["in_col_stride"], v["in_row_stride"] = 1, v["in_w"]
        v["in_block_stride"] = v["in_w"] * v["in_h"] + rng.randint(0, 3)
    v["in_base"] = rng.randrange(config.act_rows)
    v["acc_base"] = rng.randrange(config.acc_rows)
    v["wgt_base"] = rng.randrange(config.wgt_rows)


def random_instruction(rng: random.Random, name: str, config: Config) -> dict[str, int]:
    """Legal fields; draws until dispatch would accept them."""
    while True:
        v = window(rng, config)
        if name == "conv":
            v |= {
                "kernel_w": rng.randint(1, 3),
                "in_blocks": rng.randint(1, 3),
                "out_blocks": rng.randint(1, 3),
                "in_tail": rng.choice([config.lanes, rng.randint(1, config.lanes)]),
                "out_tail": rng.choice([config.lanes, rng.randint(1, config.lanes)]),
                "transposed": rng.getrandbits(1),
            }
            place(rng, v, v["in_blocks"], config)
        else:
            v |= {
                "groups_w": rng.randint(1, 3),
                "wide": rng.getrandbits(1),
                "blocks": rng.randint(1, 3),
                "tail": rng.choice([config.lanes, rng.randint(1, config.lanes)]),
            }
            place(rng, v, v["blocks"], config)
        if check(encode(name, v, config), config) is None:
            return v


async def write_rows(dut: Any, enable: Any, rows: np.ndarray) -> None:
    enable.value = 1
    for at, row in enumerate(rows):
        dut.wr_row_i.value = at
        dut.wr_data_i.value = int.from_bytes(row.tobytes(), "little")
        await RisingEdge(dut.clk_i)
    enable.value = 0


async def read_accumulators(dut: Any, bank: int, rows: np.ndarray, lanes: int) -> np.ndarray:
    """Accumulator rows (rows, LANES) through the vector engine's port."""
    result = []
    dut.acc_rd_en_i.value = 1
    for row in rows:
        dut.acc_rd_bank_i.value = bank
        dut.acc_rd_row_i.value = int(row)
        await RisingEdge(dut.clk_i)
        await RisingEdge(dut.clk_i)
        result.append(int(dut.acc_rd_data_o.value).to_bytes(4 * lanes, "little"))
    dut.acc_rd_en_i.value = 0
    return np.frombuffer(b"".join(result), dtype="<i4").reshape(len(rows), lanes)


def instruction_bits(name: str, v: dict[str, int], config: Config) -> int:
    return int.from_bytes(encode(name, v, config).astype("<u4").tobytes(), "little")


async def execute(dut: Any, bits: int, index: int) -> tuple[int, list[tuple[int, int]]]:
    """Runs one command; returns its duration and the accumulator rows reported as final."""
    dut.cmd_i.value = index << 512 | bits
    dut.cmd_valid_i.value = 1
    while True:
        await RisingEdge(dut.clk_i)
        if dut.cmd_ready_o.value == 1:
            break
    dut.cmd_valid_i.value = 0
    dut.cmd_i.value = (1 << 544) - 1  # nothing may depend on it any more
    final = []
    for cycle in range(1, 1_000_000):
        await RisingEdge(dut.clk_i)
        if dut.final_o.value == 1:
            final.append((int(dut.final_bank_o.value), int(dut.final_row_o.value)))
        if dut.done_o.value == 1:
            return cycle, final
    raise AssertionError("no done")


@cocotb.test()
@cocotb.parametrize(pattern=[Pattern.NONE, Pattern.IDLE])
async def check_random(dut: Any, pattern: Pattern) -> None:
    config = CONFIGS[os.environ["NPU_CONFIG"]]
    rng = seeded_rng(f"matrix {pattern}")
    data = np.random.default_rng(rng.getrandbits(32))
    small = Config("test", config.lanes, 2, 64, min(config.wgt_rows, 1024), 2, 128)
    small = small if config.name != "edge8" else config
    await reset(dut)
    act = data.integers(-128, 128, (small.act_rows, config.lanes)).astype(np.int8)
    wgt = data.integers(-128, 128, (small.wgt_rows, config.lanes)).astype(np.int8)
    await write_rows(dut, dut.act_wr_en_i, act)
    await write_rows(dut, dut.wgt_wr_en_i, wgt)
    acc = np.zeros((2, config.acc_rows, config.lanes), np.int64)
    known = np.zeros((2, config.acc_rows), bool)
    seen: dict[str, int] = {"accumulate": 0, "wide": 0, "padding": 0, "transposed": 0}
    name, v = "", {}
    for index in range(COUNTS[config.name]):
        if index % 3 != 2:
            name = rng.choice(["conv", "dwconv"])
            v = random_instruction(rng, name, small)
        else:  # the same once more, on top of itself
            v["accumulate"] = 1
        blocks = v["out_blocks" if name == "conv" else "blocks"]
        rows = v["acc_base"] + np.arange(blocks * v["out_h"] * v["out_w"])
        if not known[v["acc_bank"], rows].all():
            v["accumulate"] = 0
        if pattern.idles:
            for _ in range(rng.randrange(4)):
                await RisingEdge(dut.clk_i)
        cycles, final = await execute(dut, instruction_bits(name, v, small), index)
        assert cycles == BY_NAME[name].duration(v, config), f"{name} {v}"  # type: ignore[misc]
        getattr(matrix_oracle, name)(v, act, wgt, acc)
        assert sorted(final) == [(v["acc_bank"], int(row)) for row in rows], f"{name} {v}"
        actual = await read_accumulators(dut, v["acc_bank"], rows, config.lanes)
        assert (actual == acc[v["acc_bank"], rows]).all(), f"{name} {v}"
        known[v["acc_bank"], rows] = True
        seen["accumulate"] += v["accumulate"]
        seen["wide"] += v.get("wide", 0)
        seen["transposed"] += v.get("transposed", 0)
        seen["padding"] += v["origin_h"] < 0 or v["origin_w"] < 0
    assert all(seen.values()), seen


@cocotb.test()
async def check_unstable(dut: Any) -> None:
    config = CONFIGS[os.environ["NPU_CONFIG"]]
    await reset(dut)
    v = {"in_tail": 8, "out_tail": 8, "out_h": 5, "out_w": 5, "in_h": 5, "in_w": 5}
    dut.cmd_i.value = instruction_bits("conv", v, config)
    dut.cmd_valid_i.value = 1
    for bit in range(12):
        await RisingEdge(dut.clk_i)
        dut.cmd_i.value = 1 << (300 + bit)


@cocotb.test()
async def check_withdrawn(dut: Any) -> None:
    config = CONFIGS[os.environ["NPU_CONFIG"]]
    await reset(dut)
    v = {"in_tail": 8, "out_tail": 8, "out_h": 5, "out_w": 5, "in_h": 5, "in_w": 5}
    instruction = instruction_bits("conv", v, config)
    await withdraw(dut, instruction)
