"""Reciprocal and root of the row engine equal Python's integers, in the cycle that they promise."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import ReadOnly, RisingEdge

from accelsim.cosim.streams import reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit
from tests.rtl.rows.rows_oracle import floor_root, softmax_scale

RECIPROCAL_CYCLES, ROOT_CYCLES = 15, 59


@pytest.mark.rtl
def test_reciprocal_of_a_sum_equals_integers(seed: int) -> None:
    sources = rtl("npu_rows_reciprocal.sv")
    run_unit("npu_rows_reciprocal", sources, __name__, only="check_reciprocal", seed=seed)


@pytest.mark.rtl
def test_reciprocal_of_a_root_equals_integers(seed: int) -> None:
    run_unit("npu_rows_root", rtl("npu_rows_root.sv"), __name__, only="check_root", seed=seed)


def sums(rng: random.Random) -> list[int]:
    """Sums at and beside every power of two, the ends, and some of every size."""
    powers = [(1 << bits) + near for bits in range(33) for near in (-1, 0, 1)]
    edges = [word for word in powers if 0 <= word < 1 << 32] + [0, (1 << 32) - 1]
    return edges + [rng.getrandbits(32) >> rng.randrange(32) for _ in range(300)]


@cocotb.test()
async def check_reciprocal(dut: Any) -> None:
    rng = seeded_rng("reciprocal")
    await reset(dut)
    for total in sums(rng):
        await present(dut, {"sum_i": total}, rng, RECIPROCAL_CYCLES)
        scale, over = softmax_scale(total)
        assert int(dut.scale_o.value) == scale, f"sum {total}"
        assert int(dut.places_o.value) == over + 23, f"sum {total}"
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_root(dut: Any) -> None:
    rng = seeded_rng("root")
    await reset(dut)
    heights = set()
    for number in range(500):
        count, total, squares, epsilon = elements(rng, number)
        inputs = {"count_i": count, "sum_i": total % (1 << 20), "squares_i": squares}
        await present(dut, inputs | {"epsilon_i": epsilon}, rng, ROOT_CYCLES)
        variance = count * squares - total * total + epsilon
        if variance:
            height = max(h for h in range(24) if variance << 2 * h < 1 << 48)
            heights.add(height)
            text = f"variance {variance}"
            assert int(dut.places_o.value) == 34 - height, text
            assert int(dut.inverse_o.value) == (1 << 54) // floor_root(variance << 2 * height), text
        await RisingEdge(dut.clk_i)
    assert heights == set(range(24))


def elements(rng: random.Random, number: int) -> tuple[int, int, int, int]:
    """Count, sum and sum of squares of int8 elements, and an epsilon of 47 bits."""
    count = rng.choice([1, 2, 7, 8, 4095, 4096, rng.randint(1, 4096)])
    low, high = sorted(rng.randint(-128, 127) for _ in range(2))
    few = rng.randint(0, count)  # so many are the lowest, the others the highest
    if number % 5 == 0:
        low, high, few = -128, rng.choice([-128, 127]), rng.choice([count, count // 2])
    epsilon = rng.getrandbits(47) >> rng.randrange(48) if number % 3 else rng.choice([0, 1])
    if number % 7 == 0:
        low, high, epsilon = 0, 0, (1 << number % 47) - rng.getrandbits(1)
    total = few * low + (count - few) * high
    squares = few * low * low + (count - few) * high * high
    return count, total, squares, epsilon


async def present(dut: Any, inputs: dict[str, int], rng: random.Random, cycles: int) -> None:
    """Inputs for the cycle of `start_i`, noise after it; returns in the cycle of the results."""
    dut.start_i.value = 1
    for name, value in inputs.items():
        getattr(dut, name).value = value
    await RisingEdge(dut.clk_i)
    dut.start_i.value = 0
    for name in inputs:
        if name != "epsilon_i":  # stays as long as the job
            getattr(dut, name).value = rng.getrandbits(len(getattr(dut, name)))
    for _ in range(cycles - 1):
        await RisingEdge(dut.clk_i)
    await ReadOnly()
