"""Load and store DMA: data, bursts, limits, errors, and every cycle that the contract states."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ReadOnly, RisingEdge

from accelsim.cosim.streams import Pattern, reset, withdraw
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.config import CONFIGS
from tests.rtl.dma import dma_oracle as oracle
from tests.rtl.dma.axi_slave import Slave, run_job, start_slave

PARTS = ("npu_dma_pkg.sv", "npu_dma_bursts.sv", "npu_dma_rows.sv", "npu_dma_fifo.sv")
JOBS = {"edge8": 20, "base16": 15, "wide32": 15}
BEATS = {"edge8": 900, "base16": 500, "wide32": 300}
MEMORIES = ("act", "wgt", "par", "tab")


def bench(name: str, config: str, only: str, seed: int, source: Path | None = None, label: str = "",
          **kw: Any) -> None:  # fmt: skip
    sources = (*rtl(f"gen/{config}/npu_pkg.sv", *PARTS), source or rtl(f"{name}.sv")[0])
    run_unit(name, sources, __name__, only=only, seed=seed, environment={"DMA_CONFIG": config},
             name=f"{name}-{config}-{label or only}", **kw)  # fmt: skip


@pytest.mark.rtl
@pytest.mark.parametrize("config", list(CONFIGS))
def test_load_copies_rows_under_every_pattern(config: str, seed: int) -> None:
    bench("npu_load", config, "check_loads", seed)


@pytest.mark.rtl
@pytest.mark.parametrize("config", list(CONFIGS))
def test_store_copies_rows_under_every_pattern(config: str, seed: int) -> None:
    bench("npu_store", config, "check_stores", seed)


@pytest.mark.rtl
@pytest.mark.parametrize("name", ["npu_load", "npu_store"])
def test_assertion_on_a_changed_command_fires(name: str, seed: int) -> None:
    bench(name, "edge8", "check_broken_command", seed, expect_failure="command changed while it")


@pytest.mark.rtl
@pytest.mark.parametrize("name", ["npu_load", "npu_store"])
def test_a_stop_or_a_reset_may_withdraw_a_command(name: str, seed: int) -> None:
    bench(name, "edge8", "check_withdrawn", seed)


@pytest.mark.rtl
def test_assertion_on_an_unexpected_beat_fires(seed: int) -> None:
    bench("npu_load", "edge8", "check_stray_beat", seed, expect_failure="no burst asked for")


@pytest.mark.rtl
def test_assertion_on_an_unexpected_response_fires(seed: int) -> None:
    bench("npu_store", "edge8", "check_stray_response", seed, expect_failure="no burst asked for")


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("name", "check", "signal", "noise", "message"),
    [
        ("npu_load", "check_loads", "arvalid_o", "rlast_i", "read address changed while it waited"),
        (
            "npu_store",
            "check_stores",
            "awvalid_o",
            "bresp_i[0]",
            "write address changed while it waited",
        ),
        ("npu_store", "check_stores", "wvalid_o", "bresp_i[0]", "beat changed while it waited"),
    ],
)
def test_assertion_on_a_withdrawn_word_fires(
    name: str, check: str, signal: str, noise: str, message: str, seed: int, tmp_path: Path
) -> None:
    text = rtl(f"{name}.sv")[0].read_text(encoding="utf-8")
    broken = text.replace(f"assign {signal} = ", f"assign {signal} = !{noise} && ")
    assert broken != text
    (tmp_path / f"{name}.sv").write_text(broken, encoding="utf-8")
    bench(
        name,
        "edge8",
        f"{check}.*BACKPRESSURE",
        seed,
        tmp_path / f"{name}.sv",
        f"broken_{signal}",
        expect_failure=message,
    )


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("port", "message"), [("push_i", "push without room"), ("pop_i", "pop without a word")]
)
def test_assertion_on_a_misused_fifo_fires(port: str, message: str, seed: int) -> None:
    run_unit("npu_dma_fifo", rtl("npu_dma_fifo.sv"), __name__, only="check_misuse", seed=seed,
             name=f"npu_dma_fifo-{port}", environment={"FIFO_PORT": port},
             expect_failure=message)  # fmt: skip


def configuration() -> tuple[Any, np.random.Generator]:
    return CONFIGS[os.environ["DMA_CONFIG"]], np.random.default_rng(cocotb.RANDOM_SEED)


def some_failures(rng: np.random.Generator, count: int) -> set[int]:
    """Now and then some of `count` beats or bursts fail, the first and last among them."""
    if rng.random() < 0.7:
        return set()
    return {int(rng.choice([0, count - 1, int(rng.integers(count))]))}


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_loads(dut: Any, pattern: Pattern) -> None:
    config, rng = configuration()
    await reset(dut)
    slave = start_slave(dut, rng, config.lanes, reads=True)
    slave.pattern = pattern
    written: list[tuple[str, int, bytes]] = []
    cocotb.start_soon(note_writes(dut, written, config.lanes))
    crossings = most = 0
    for _ in range(JOBS[config.name]):
        job = oracle.random_job(rng, config, "load", BEATS[config.name])
        beats, bursts = oracle.beats(job, config.lanes), oracle.bursts(job, config.lanes)
        slave.forget()
        written.clear()
        slave.latency = int(rng.integers(1, 60))
        slave.fail_beats = some_failures(rng, len(beats))
        start, error = await run_job(dut, slave, job, rng)
        memory = MEMORIES[job.values["memory"]]
        expected = [(memory, row, oracle.content(at, config.lanes)) for at, row in beats]
        assert written == expected, f"{job}"
        assert error == bool(slave.fail_beats)
        check_bursts(slave, bursts, start, config.read_outstanding, oracle.load_times)
        most = max(most, slave.most_in_flight)
        crossings += len(bursts) - job.values["count1"] * job.values["count2"]
    assert crossings > 0, "no run was split"
    assert most == config.read_outstanding or slave.pattern != Pattern.NONE
    assert not pattern.stalls or slave.stalled.get("ar", 0) > 0


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_stores(dut: Any, pattern: Pattern) -> None:
    config, rng = configuration()
    await reset(dut)
    slave = start_slave(dut, rng, config.lanes, reads=False)
    slave.pattern = pattern
    rows = rng.integers(0, 256, (config.act_rows, config.lanes), dtype=np.uint8)
    cocotb.start_soon(serve_rows(dut, rows, rng))
    crossings = most = 0
    for _ in range(JOBS[config.name]):
        job = oracle.random_job(rng, config, "store", BEATS[config.name])
        beats, bursts = oracle.beats(job, config.lanes), oracle.bursts(job, config.lanes)
        slave.forget()
        slave.latency = int(rng.integers(1, 60))
        slave.fail_beats = some_failures(rng, len(bursts))
        start, error = await run_job(dut, slave, job, rng)
        ends = set(np.cumsum([length for _, length in bursts]) - 1)
        expected = [(rows[row].tobytes(), i in ends) for i, (_, row) in enumerate(beats)]
        assert slave.beats == expected, f"{job}"
        assert error == bool(slave.fail_beats)
        check_bursts(slave, bursts, start, config.write_outstanding, oracle.store_times)
        most = max(most, slave.most_in_flight)
        crossings += len(bursts) - job.values["count1"] * job.values["count2"]
    assert crossings > 0, "no run was split"
    assert most == config.write_outstanding or slave.pattern != Pattern.NONE
    assert not pattern.stalls or min(slave.stalled.get(c, 0) for c in ("aw", "w")) > 0


def check_bursts(
    slave: Slave, bursts: list[tuple[int, int]], start: int, limit: int, times: Any
) -> None:
    """Bursts, limit and end in any pattern; without stalls every cycle."""
    assert slave.addresses == bursts
    assert slave.most_in_flight <= limit
    assert slave.cycle == slave.last_cycle + 1, "done comes one cycle after the last response"
    if slave.pattern != Pattern.NONE:
        return
    lengths = [length for _, length in bursts]
    expected = times(lengths, start, slave.latency, limit)
    assert slave.address_cycles == expected.address
    assert slave.cycle == expected.done
    if slave.beat_cycles:
        beats = zip(expected.first_beat, lengths, strict=True)
        assert slave.beat_cycles == [first + i for first, n in beats for i in range(n)]


async def note_writes(dut: Any, written: list[tuple[str, int, bytes]], lanes: int) -> None:
    """Collects what the load DMA writes, up to and including the cycle of done."""
    rows = {"act": dut.act_wr_row_o, "wgt": dut.wgt_wr_row_o, "par": dut.par_wr_beat_o}
    rows["tab"] = dut.tab_wr_beat_o
    while True:
        await ReadOnly()
        enabled = [m for m in MEMORIES if getattr(dut, f"{m}_wr_en_o").value == 1]
        assert len(enabled) <= 1
        for memory in enabled:
            data = int(getattr(dut, f"{memory}_wr_data_o").value).to_bytes(lanes, "little")
            written.append((memory, int(rows[memory].value), data))
        await RisingEdge(dut.clk_i)


async def serve_rows(dut: Any, rows: Any, rng: np.random.Generator) -> None:
    """Activation memory: a row one cycle after its read, noise at all other times."""
    while True:
        await RisingEdge(dut.clk_i)
        data = rng.bytes(rows.shape[1])
        if dut.act_rd_en_o.value == 1:
            data = rows[int(dut.act_rd_row_o.value)].tobytes()
        dut.act_rd_data_i.value = int.from_bytes(data, "little")


@cocotb.test()
async def check_broken_command(dut: Any) -> None:
    config, rng = configuration()
    await reset(dut)
    name = "load" if hasattr(dut, "rvalid_i") else "store"
    job = oracle.random_job(rng, config, name, 8)
    dut.cmd_valid_i.value = 1
    for index in range(4):
        dut.cmd_i.value = job.instruction | index << 512
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_withdrawn(dut: Any) -> None:
    config, rng = configuration()
    await reset(dut)
    name = "load" if hasattr(dut, "rvalid_i") else "store"
    await withdraw(dut, oracle.random_job(rng, config, name, 8).instruction)


@cocotb.test()
async def check_stray_beat(dut: Any) -> None:
    await reset(dut)
    dut.rvalid_i.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_stray_response(dut: Any) -> None:
    await reset(dut)
    dut.bvalid_i.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_misuse(dut: Any) -> None:
    await reset(dut)
    getattr(dut, os.environ["FIFO_PORT"]).value = 1
    for _ in range(6):
        await RisingEdge(dut.clk_i)
