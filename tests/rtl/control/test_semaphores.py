"""Taking a token that is not there is seen, and so is a weight tile asked for too early."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import reset
from accelsim.cosim.unit import rtl, run_unit


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("module", "others", "check", "message"),
    [
        ("npu_semaphores", (), "check_take", "npu_semaphores: a token was taken that is not there"),
        (
            "npu_matrix_weights",
            ("npu_matrix_pkg.sv",),
            "check_tile",
            "npu_matrix_weights: tile requested while another is loading",
        ),
    ],
)
def test_broken_rules_are_seen_by_the_assertions(
    module: str, others: tuple[str, ...], check: str, message: str, seed: int
) -> None:
    sources = rtl("gen/edge8/npu_pkg.sv", *others, f"{module}.sv")
    run_unit(module, sources, __name__, seed=seed, only=check, expect_failure=message)


@cocotb.test()
async def check_take(dut: Any) -> None:
    await reset(dut)
    dut.take_i.value = 1 << 5
    for _ in range(2):
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_tile(dut: Any) -> None:
    await reset(dut)
    dut.tile_i.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk_i)
