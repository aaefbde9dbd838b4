"""Fetch wins the read address channel, an address that waits keeps it, responses go by id."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from cocotb.triggers import ReadOnly, RisingEdge

from accelsim.cosim.streams import Pattern, StreamDriver, StreamMonitor, reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit

FETCH, LOAD = 0, 1


def run(only: str, seed: int, expect_failure: str | None = None) -> None:
    sources = rtl("gen/edge8/npu_pkg.sv", "npu_axi_read.sv")
    run_unit("npu_axi_read", sources, __name__, seed=seed, only=only, expect_failure=expect_failure)


@pytest.mark.rtl
def test_addresses_are_arbitrated_and_responses_routed(seed: int) -> None:
    run("check_streams", seed)
    run("check_priority", seed)


@pytest.mark.rtl
def test_moving_address_is_seen_by_the_assertion(seed: int) -> None:
    run("check_moving", seed, "npu_axi_read: address changed while valid and not ready")


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_streams(dut: Any, pattern: Pattern) -> None:
    await reset(dut)
    rng = seeded_rng("addresses")
    drivers, words = {}, {}
    for name in ("fetch", "load"):
        data = [f"{name}_ar_addr_i", f"{name}_ar_len_i"]
        drivers[name] = StreamDriver(dut, f"{name}_ar_valid_i", f"{name}_ar_ready_o", data, pattern)
        words[name] = [{data[0]: rng.getrandbits(40), data[1]: rng.getrandbits(8)}
                       for _ in range(100)]  # fmt: skip
    sink = StreamMonitor(dut, "m_axi_arvalid_o", "m_axi_arready_i",
                         ["m_axi_arid_o", "m_axi_araddr_o", "m_axi_arlen_o"], pattern)  # fmt: skip
    tasks = [cocotb.start_soon(drivers[n].send_all(words[n])) for n in drivers]
    got = await sink.receive(200)
    for task in tasks:
        await task
    for identity, name in ((FETCH, "fetch"), (LOAD, "load")):
        mine = [w for w in got if isinstance(w, dict) and w["m_axi_arid_o"] == identity]
        assert [(w["m_axi_araddr_o"], w["m_axi_arlen_o"]) for w in mine] == [
            tuple(w.values()) for w in words[name]
        ]
    drivers["fetch"].finish()
    drivers["load"].finish(expect_stalls=True)
    sink.finish()
    assert dut.m_axi_arsize_o.value == 3 and dut.m_axi_arburst_o.value == 1


@cocotb.test()
async def check_priority(dut: Any) -> None:
    await reset(dut)
    dut.fetch_ar_valid_i.value = dut.load_ar_valid_i.value = 1
    await ReadOnly()
    assert dut.m_axi_arid_o.value == FETCH
    await RisingEdge(dut.clk_i)
    dut.m_axi_arready_i.value = 1  # fetch is accepted
    await RisingEdge(dut.clk_i)
    dut.fetch_ar_valid_i.value, dut.m_axi_arready_i.value = 0, 0
    await RisingEdge(dut.clk_i)  # load is presented and waits
    dut.fetch_ar_valid_i.value = 1
    await ReadOnly()
    assert dut.m_axi_arid_o.value == LOAD
    await RisingEdge(dut.clk_i)
    for identity in (FETCH, LOAD, 2):
        dut.m_axi_rid_i.value, dut.m_axi_rvalid_i.value = identity, 1
        await ReadOnly()
        assert dut.fetch_r_valid_o.value == (identity == FETCH)
        assert dut.load_r_valid_o.value == (identity == LOAD)
        assert dut.m_axi_rready_o.value == 1
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_moving(dut: Any) -> None:
    await reset(dut)
    dut.fetch_ar_valid_i.value = 1
    for at in range(4):
        dut.fetch_ar_addr_i.value = at << 6
        await RisingEdge(dut.clk_i)
