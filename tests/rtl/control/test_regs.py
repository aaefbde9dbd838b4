"""The register file behaves as the map says, under every AXI4-Lite pattern."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import Pattern, reset, seeded_rng
from accelsim.cosim.unit import rtl, run_unit
from accelsim.spec.registers import REGISTERS, Register, address

OKAY, SLVERR = 0, 2
RW = [(r, i) for r in REGISTERS if r.access == "rw" for i in range(r.count)]


def run(only: str, seed: int, expect_failure: str | None = None, top: str = "npu_regs") -> None:
    sources = rtl("gen/edge8/npu_pkg.sv", "npu_axil_check.sv", "npu_regs.sv")
    run_unit(top, sources[: 2 + (top == "npu_regs")], __name__, seed=seed, only=only,
             expect_failure=expect_failure)  # fmt: skip


@pytest.mark.rtl
def test_registers_keep_what_is_written_and_nothing_else(seed: int) -> None:
    run("check_map", seed)


@pytest.mark.rtl
def test_start_reset_interrupt_and_busy(seed: int) -> None:
    run("check_control", seed)


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("channel", "what"),
    [
        ("aw", "write address"),
        ("w", "write data"),
        ("b", "write response"),
        ("ar", "read address"),
        ("r", "read data"),
    ],
)
def test_protocol_violations_are_seen_by_the_assertions(channel: str, what: str, seed: int) -> None:
    message = f"npu_regs: {what} changed while valid and not ready"
    run(f"check_moving_{channel}$", seed, message, "npu_axil_check")


@pytest.mark.rtl
def test_the_register_file_carries_the_assertions(seed: int) -> None:
    run("check_moving_at_regs", seed, "npu_regs: write address changed while valid and not ready")


class Port:
    """AXI4-Lite accesses with random gaps and random ready, and a check that answers stay put."""

    def __init__(self, dut: Any, pattern: Pattern, rng: random.Random) -> None:
        self.dut, self.pattern, self.rng, self.stalled = dut, pattern, rng, 0

    async def _gap(self) -> None:
        while self.pattern.idles and self.rng.random() < 0.5:
            await RisingEdge(self.dut.clk_i)

    async def _answer(self, channel: str, data: list[str]) -> list[int]:
        """Waits for B or R; stalls it at random and checks that it does not change."""
        valid = getattr(self.dut, f"s_axil_{channel}valid_o")
        ready = getattr(self.dut, f"s_axil_{channel}ready_i")
        held: list[int] | None = None
        while True:
            take = not (self.pattern.stalls and self.rng.random() < 0.5)
            ready.value = int(take)
            await RisingEdge(self.dut.clk_i)
            if valid.value != 1:
                assert held is None
                continue
            got = [int(getattr(self.dut, f"s_axil_{name}_o").value) for name in data]
            assert held is None or held == got
            held = got
            self.stalled += not take
            if take:
                ready.value = 0
                return got

    async def write(self, at: int, value: int, strobes: int = 15) -> int:
        """Address and data may come in either order."""
        dut = self.dut
        await self._gap()
        dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value = at, value
        dut.s_axil_wstrb_i.value = strobes
        order = [dut.s_axil_awvalid_i, dut.s_axil_wvalid_i]
        self.rng.shuffle(order)
        order[0].value = 1
        await self._gap()
        order[1].value = 1
        while True:
            await RisingEdge(dut.clk_i)
            if dut.s_axil_awready_o.value == 1:
                break
        assert dut.s_axil_wready_o.value == 1
        order[0].value = order[1].value = 0
        return (await self._answer("b", ["bresp"]))[0]

    async def read(self, at: int) -> tuple[int, int]:
        dut = self.dut
        await self._gap()
        dut.s_axil_araddr_i.value, dut.s_axil_arvalid_i.value = at, 1
        while True:
            await RisingEdge(dut.clk_i)
            if dut.s_axil_arready_o.value == 1:
                break
        dut.s_axil_arvalid_i.value = 0
        data, response = await self._answer("r", ["rdata", "rresp"])
        return data, response


def width_mask(register: Register) -> int:
    special = {"BASE_LO": 0xFFFFFFC0, "BASE_HI": 0xFF, "PRESET": 0xFF, "IRQ_ENABLE": 1}
    return special.get(register.name, 0xFFFFFFFF)


@cocotb.test()
@cocotb.parametrize(pattern=list(Pattern))
async def check_map(dut: Any, pattern: Pattern) -> None:
    await reset(dut)
    rng = seeded_rng(f"map {pattern}")
    port = Port(dut, pattern, rng)
    dut.error_index_i.value, dut.cycles_i.value = 0x12345678, 0xABCD_0000_4321
    dut.count_i.value = sum((17 * i & 0xFF) << 8 * i for i in range(16))
    expected = {address(r.name, i): 0 for r, i in RW}
    for register, index in rng.sample(RW * 3, len(RW) * 3):
        at, value = address(register.name, index), rng.getrandbits(32)
        strobes = rng.choice([15, 15, rng.getrandbits(4)])
        assert await port.write(at, value, strobes) == OKAY
        lanes = sum(0xFF << 8 * b for b in range(4) if strobes >> b & 1)
        expected[at] = (expected[at] & ~lanes | value & lanes) & width_mask(register)
    for at in rng.sample(sorted(expected), len(expected)):
        assert await port.read(at) == (expected[at], OKAY), hex(at)
    assert await port.read(address("ID")) == (0x4E505531, OKAY)
    assert await port.read(address("LANES")) == (8, OKAY)
    assert await port.read(address("ERROR_INDEX")) == (0x12345678, OKAY)
    assert await port.read(address("CYCLES_LO")) == (0x4321, OKAY)
    assert await port.read(address("CYCLES_HI")) == (0xABCD, OKAY)
    for i in range(16):
        assert await port.read(address("SEMAPHORE", i)) == (17 * i & 0xFF, OKAY)
    assert await port.write(address("ID"), 5) == OKAY
    assert await port.read(address("ID")) == (0x4E505531, OKAY)
    for at in (0x040, 0x07C, 0x0E0, 0x180, 0xFFC):
        assert await port.write(at, 0xFFFFFFFF) == SLVERR
        assert (await port.read(at))[1] == SLVERR
    flat = int(dut.base_o.value)
    for i in range(8):
        base = expected[address("BASE_HI", i)] << 32 | expected[address("BASE_LO", i)]
        assert flat >> 40 * i & ((1 << 40) - 1) == base
    assert (port.stalled > 0) == pattern.stalls
    dut.clear_i.value = 1
    await RisingEdge(dut.clk_i)
    dut.clear_i.value = 0
    for at in expected:
        assert await port.read(at) == (0, OKAY)


class Pulses:
    """Counts cycles in which start and reset are high."""

    def __init__(self, dut: Any) -> None:
        self.start = self.reset = 0
        self.dut = dut
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            await RisingEdge(self.dut.clk_i)
            self.start += int(self.dut.start_o.value)
            self.reset += int(self.dut.reset_o.value)


@cocotb.test()
async def check_control(dut: Any) -> None:
    await reset(dut)
    port, pulses = Port(dut, Pattern.NONE, seeded_rng("control")), Pulses(dut)
    await port.write(address("CTRL"), 1)
    await port.write(address("CTRL"), 2)
    await port.write(address("CTRL"), 3)  # reset wins
    await port.write(address("CTRL"), 1, strobes=14)
    await port.write(address("CTRL"), 0)
    assert (pulses.start, pulses.reset) == (1, 2)
    dut.busy_i.value = 1
    await port.write(address("CTRL"), 1)
    for name in ("PROGRAM_LENGTH", "WATCHDOG", "SIZE", "BASE_LO", "PRESET"):
        await port.write(address(name), 0xC0)
        assert (await port.read(address(name)))[0] == 0
    assert (await port.read(address("STATUS")))[0] == 1
    dut.busy_i.value, dut.resetting_i.value = 0, 1
    await port.write(address("CTRL"), 1)
    assert (await port.read(address("STATUS")))[0] == 8
    dut.resetting_i.value = 0
    assert pulses.start == 1
    dut.finish_i.value = 1
    await RisingEdge(dut.clk_i)
    dut.finish_i.value = 0
    await RisingEdge(dut.clk_i)
    assert dut.irq_o.value == 0
    await port.write(address("IRQ_ENABLE"), 1)
    await RisingEdge(dut.clk_i)
    assert dut.irq_o.value == 1
    assert (await port.read(address("IRQ_STATUS")))[0] == 1
    await port.write(address("IRQ_STATUS"), 0)
    assert (await port.read(address("IRQ_STATUS")))[0] == 1
    await port.write(address("IRQ_STATUS"), 1)
    assert (await port.read(address("IRQ_STATUS")))[0] == 0
    assert dut.irq_o.value == 0


async def move(dut: Any, channel: str, data: str) -> None:
    """Changes the data of a channel that is valid and not ready."""
    await reset(dut)
    getattr(dut, f"{channel}valid_i").value = 1
    for word in range(4):
        getattr(dut, f"{data}_i").value = word
        await RisingEdge(dut.clk_i)


@cocotb.test()
async def check_moving_aw(dut: Any) -> None:
    await move(dut, "aw", "awaddr")


@cocotb.test()
async def check_moving_w(dut: Any) -> None:
    await move(dut, "w", "wdata")


@cocotb.test()
async def check_moving_b(dut: Any) -> None:
    await move(dut, "b", "bresp")


@cocotb.test()
async def check_moving_ar(dut: Any) -> None:
    await move(dut, "ar", "araddr")


@cocotb.test()
async def check_moving_r(dut: Any) -> None:
    await move(dut, "r", "rdata")


@cocotb.test()
async def check_moving_at_regs(dut: Any) -> None:
    await reset(dut)
    dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = 1  # nobody takes the response
    for at in range(5):
        dut.s_axil_awaddr_i.value = 4 * at
        await RisingEdge(dut.clk_i)
