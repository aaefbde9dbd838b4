"""A host and a memory for the NPU's top in cocotb: AXI4-Lite accesses, AXI4 responses, programs.

What comes in: the DUT, instructions as (name, fields). What goes out: memory contents and register
values. It models AXI only; what instructions do is the tests' business.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from accelsim.cosim.streams import Pattern
from accelsim.spec.config import Config
from accelsim.spec.encoding import contract_hash, encode
from accelsim.spec.isa import BY_NAME
from accelsim.spec.registers import address

MEMORY_BYTES = 1 << 16
SLVERR = 2
Step = tuple[str, dict[str, int]]


class Memory:
    """Serves AXI reads and writes in order from one byte array, with random stalls."""

    def __init__(self, dut: Any, config: Config, pattern: Pattern, rng: random.Random) -> None:
        self.dut, self.lanes, self.rng = dut, config.lanes, rng
        self.data = bytearray(MEMORY_BYTES)
        self.stalls, self.idles = pattern.stalls, pattern.idles
        self.bad_pages: set[int] = set()  # 256-byte pages that answer SLVERR
        self.reads: deque[tuple[int, int, int, int]] = deque()
        self.writes: deque[tuple[int, int]] = deque()
        self.responses: deque[tuple[int, int]] = deque()
        self.cycle = 0
        self.latency = 6
        self.stalled = {"ar": 0, "aw": 0, "w": 0}
        self.first_ar: int | None = None
        self.addresses: list[tuple[int, int]] = []  # (id, address) of every read burst
        cocotb.start_soon(self._run())

    def _ready(self) -> int:
        return int(not (self.stalls and self.rng.random() < 0.4))

    def _error(self, at: int) -> int:
        return SLVERR if at >> 8 in self.bad_pages else 0

    async def _run(self) -> None:
        dut = self.dut
        beat, written, bad = 0, 0, False
        ready = {"ar": 0, "aw": 0, "w": 0}
        while True:
            for name in ready:
                ready[name] = self._ready()
                getattr(dut, f"m_axi_{name}ready_i").value = ready[name]
            gap = self.idles and self.rng.random() < 0.4
            read = self.reads[0] if self.reads and self.reads[0][0] <= self.cycle else None
            show = read is not None and not gap
            dut.m_axi_rvalid_i.value = int(show)
            if show and read is not None:
                at = read[2] + beat * self.lanes
                dut.m_axi_rid_i.value = read[1]
                beat_bytes = bytes(self.data[at : at + self.lanes])
                dut.m_axi_rdata_i.value = int.from_bytes(beat_bytes, "little")
                dut.m_axi_rresp_i.value = self._error(at)
                dut.m_axi_rlast_i.value = int(read[3] == beat)
            answer = bool(self.responses) and self.responses[0][0] <= self.cycle
            dut.m_axi_bvalid_i.value = int(answer)
            dut.m_axi_bresp_i.value = self.responses[0][1] if answer else 0
            dut.m_axi_bid_i.value = 0
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if show and read is not None:
                assert dut.m_axi_rready_o.value == 1
                beat += 1
                if beat > read[3]:
                    self.reads.popleft()
                    beat = 0
            if answer and dut.m_axi_bready_o.value == 1:
                self.responses.popleft()
            for name in ready:
                valid = getattr(dut, f"m_axi_{name}valid_o").value == 1
                self.stalled[name] += valid and not ready[name]
            if dut.m_axi_arvalid_o.value == 1 and ready["ar"]:
                at, identity = int(dut.m_axi_araddr_o.value), int(dut.m_axi_arid_o.value)
                self.addresses.append((identity, at))
                self.reads.append(
                    (self.cycle + self.latency, identity, at, int(dut.m_axi_arlen_o.value))
                )
            if dut.m_axi_awvalid_o.value == 1 and ready["aw"]:
                self.writes.append((int(dut.m_axi_awaddr_o.value), int(dut.m_axi_awlen_o.value)))
            if dut.m_axi_wvalid_o.value == 1 and ready["w"]:
                start, length = self.writes[0]
                at = start + written * self.lanes
                word = int(dut.m_axi_wdata_o.value).to_bytes(self.lanes, "little")
                self.data[at : at + self.lanes] = word
                bad = bad or self._error(at) != 0
                assert (dut.m_axi_wlast_o.value == 1) == (written == length)
                written += 1
                if written > length:
                    self.responses.append((self.cycle + self.latency, SLVERR if bad else 0))
                    self.writes.popleft()
                    written, bad = 0, False


class Host:
    """Register accesses of one NPU, and runs of programs."""

    def __init__(self, dut: Any, config: Config, memory: Memory) -> None:
        self.dut, self.config, self.memory = dut, config, memory

    async def write(self, offset: int, value: int, strobes: int = 15) -> int:
        """One register write; returns its response. Comes back when B was taken."""
        dut = self.dut
        dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value = offset, value
        dut.s_axil_wstrb_i.value = strobes
        dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = 1
        dut.s_axil_bready_i.value = 1
        await RisingEdge(dut.clk_i)
        while dut.s_axil_awready_o.value != 1:
            await RisingEdge(dut.clk_i)
        dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = 0
        await RisingEdge(dut.clk_i)
        assert dut.s_axil_bvalid_o.value == 1
        return int(dut.s_axil_bresp_o.value)

    async def read(self, offset: int) -> int:
        """One register read."""
        dut = self.dut
        dut.s_axil_araddr_i.value, dut.s_axil_arvalid_i.value = offset, 1
        dut.s_axil_rready_i.value = 1
        await RisingEdge(dut.clk_i)
        while dut.s_axil_arready_o.value != 1:
            await RisingEdge(dut.clk_i)
        dut.s_axil_arvalid_i.value = 0
        await RisingEdge(dut.clk_i)
        assert dut.s_axil_rvalid_o.value == 1
        return int(dut.s_axil_rdata_o.value)

    async def get(self, name: str, index: int = 0) -> int:
        return await self.read(address(name, index))

    async def set(self, name: str, value: int, index: int = 0) -> None:
        assert await self.write(address(name, index), value) == 0

    async def load_program(
        self, steps: Sequence[Step | int], base: int, bases: dict[int, tuple[int, int]]
    ) -> None:
        """Puts a program into memory (an int is a raw instruction) and sets the registers."""
        words = []
        opcodes = set()
        for step in steps:
            if isinstance(step, int):
                words.append(step.to_bytes(64, "little"))
                continue
            name, fields = step
            opcodes.add(BY_NAME[name].opcode)
            words.append(encode(name, fields, self.config).astype("<u4").tobytes())
        image = b"".join(words)
        self.memory.data[base : base + len(image)] = image
        await self.set("PROGRAM_LENGTH", len(steps))
        await self.set("PROGRAM_OPCODES", sum(1 << o for o in opcodes))
        code = contract_hash(opcodes, self.config)
        await self.set("PROGRAM_HASH_LO", code & 0xFFFFFFFF)
        await self.set("PROGRAM_HASH_HI", code >> 32)
        await self.set("BASE_LO", base, 0)
        for number, (at, size) in bases.items():
            await self.set("BASE_LO", at, number)
            await self.set("SIZE", size, number)
        await self.set("IRQ_ENABLE", 1)

    async def run(self, limit: int = 20_000) -> int:
        """Starts, waits for the interrupt and acknowledges it; returns STATUS."""
        await self.set("CTRL", 1)
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if self.dut.irq_o.value == 1:
                break
        else:
            raise AssertionError("no interrupt")
        status = await self.get("STATUS")
        await self.set("IRQ_STATUS", 1)
        await RisingEdge(self.dut.clk_i)
        assert self.dut.irq_o.value == 0
        return status


def int8(memory: Memory, at: int, shape: tuple[int, ...]) -> np.ndarray:
    """A view of memory as int8."""
    count = int(np.prod(shape))
    return np.frombuffer(bytes(memory.data[at : at + count]), np.int8).reshape(shape)
