"""The AXI side of a DMA test: memory with the contract's timing, or with random stalls.

What comes in: the DUT's pins, a generator, a pattern, a latency. What goes out: what was asked and
written, each with its cycle. Cycle numbers count rising edges; a handshake belongs to the edge that
ends its cycle. It serves reads or writes, whichever pins the DUT has.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time

from accelsim.cosim.streams import CLOCK_NS, Pattern
from tests.rtl.dma.dma_oracle import content

STALL_CHANCE = 0.4


class Slave:
    """State of the slave."""

    def __init__(self, dut: Any, rng: np.random.Generator, lanes: int) -> None:
        """Starts to serve with no stalls and a latency of 4 cycles."""
        self.dut, self.rng, self.lanes = dut, rng, lanes
        self.pattern, self.latency = Pattern.NONE, 4
        self.free = 0
        self.fail_beats: set[int] = set()  # of the next job: beats (or bursts) that meet an error
        self.stalled: dict[str, int] = {}
        self.reads: deque[tuple[int, int, bool]] = deque()  # cycle, address, last beat of a burst
        self.responses: deque[int] = deque()  # cycles
        self.forget()

    def forget(self) -> None:
        """Clears what was noted; call between jobs."""
        self.addresses: list[tuple[int, int]] = []
        self.address_cycles: list[int] = []
        self.beats: list[tuple[bytes, bool]] = []
        self.beat_cycles: list[int] = []
        self.last_cycle = -1
        self.served = 0
        self.in_flight = self.most_in_flight = 0
        self.burst_first = 0

    @property
    def cycle(self) -> int:
        """Number of the rising edge at which the simulation is."""
        return int(get_sim_time("ns")) // CLOCK_NS

    def ready(self) -> int:
        return int(not (self.pattern.stalls and self.rng.random() < STALL_CHANCE))

    def idle(self) -> bool:
        return bool(self.pattern.idles and self.rng.random() < STALL_CHANCE)

    def response(self) -> int:
        """OKAY or EXOKAY, or an error where the test asked for one."""
        failed = self.served in self.fail_beats
        self.served += 1
        return int(self.rng.integers(2, 4) if failed else self.rng.integers(0, 2))

    def serve(self, arrival: int, beats: int) -> int:
        """First cycle of service."""
        begin = max(arrival + self.latency, self.free)
        self.free = begin + beats
        return begin

    def fired(self, channel: str) -> bool:
        """Whether a channel that the DUT drives had a handshake at this edge."""
        valid = getattr(self.dut, f"{channel}valid_o").value == 1
        ready = getattr(self.dut, f"{channel}ready_i").value == 1
        if valid and not ready:
            self.stalled[channel] = self.stalled.get(channel, 0) + 1
        return valid and ready

    def note_address(self, channel: str) -> int:
        """Notes a burst; returns its beats."""
        length = int(getattr(self.dut, f"{channel}len_o").value) + 1
        self.addresses.append((int(getattr(self.dut, f"{channel}addr_o").value), length))
        self.address_cycles.append(self.cycle)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return length

    async def run_reads(self) -> None:
        """Serves AR and R forever."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_i)
            if dut.rvalid_i.value == 1:
                assert dut.rready_o.value == 1, "R is always accepted"
                self.last_cycle = self.cycle
                self.in_flight -= int(dut.rlast_i.value)
            if self.fired("ar"):
                length = self.note_address("ar")
                begin, address = self.serve(self.cycle, length), self.addresses[-1][0]
                for i in range(length):
                    place = (begin + i, address + i * self.lanes, i == length - 1)
                    self.reads.append(place)
            dut.arready_i.value = self.ready()
            valid = bool(self.reads) and self.reads[0][0] <= self.cycle + 1 and not self.idle()
            dut.rvalid_i.value = int(valid)
            dut.rlast_i.value = int(self.rng.integers(2))
            dut.rresp_i.value = int(self.rng.integers(4))
            data = self.rng.bytes(self.lanes)
            if valid:
                _, address, last = self.reads.popleft()
                data = content(address, self.lanes)
                dut.rlast_i.value = int(last)
                dut.rresp_i.value = self.response()
            dut.rdata_i.value = int.from_bytes(data, "little")

    async def run_writes(self) -> None:
        """Serves AW, W and B forever."""
        dut = self.dut
        ended = 0
        while True:
            await RisingEdge(dut.clk_i)
            if dut.bvalid_i.value == 1:
                assert dut.bready_o.value == 1, "B is always accepted"
                self.last_cycle = self.cycle
                self.in_flight -= 1
            if self.fired("w"):
                last = dut.wlast_o.value == 1
                data = int(dut.wdata_o.value).to_bytes(self.lanes, "little")
                ended = sum(is_last for _, is_last in self.beats)
                assert ended < len(self.addresses), "W after its AW"
                self.beats.append((data, last))
                self.beat_cycles.append(self.cycle)
                if last:
                    length = len(self.beats) - self.burst_first
                    self.burst_first = len(self.beats)
                    self.responses.append(self.serve(self.cycle, length) + length)
            if self.fired("aw"):
                self.note_address("aw")
            dut.awready_i.value = self.ready()
            dut.wready_i.value = self.ready()
            due = bool(self.responses) and self.responses[0] <= self.cycle + 1
            valid = due and not self.idle()
            dut.bvalid_i.value = int(valid)
            dut.bresp_i.value = int(self.rng.integers(4))
            if valid:
                self.responses.popleft()
                dut.bresp_i.value = self.response()


async def run_job(dut: Any, slave: Slave, job: Any, rng: np.random.Generator) -> tuple[int, bool]:
    """Presents one command; returns the cycle of its start and whether it ended with an error.

    Returns after the edge that ends the cycle of `done_o`.
    """
    bases = [int(x) << 6 for x in rng.integers(0, 1 << 34, 8)]
    bases[job.values["base_reg"]] = job.base
    dut.base_i.value = sum(base << 40 * i for i, base in enumerate(bases))
    dut.cmd_i.value = job.instruction
    dut.cmd_valid_i.value = 1
    await RisingEdge(dut.clk_i)
    assert dut.cmd_ready_o.value == 1, "the engine is ready in the cycle after done"
    start = slave.cycle
    dut.cmd_valid_i.value = 0
    dut.cmd_i.value = int.from_bytes(rng.bytes(68), "little")
    for _ in range(20_000):
        await RisingEdge(dut.clk_i)
        if dut.done_o.value == 1:
            return start, dut.error_o.value == 1
        assert dut.cmd_ready_o.value == 0, "ready while busy"
    raise AssertionError(f"no done_o: {len(slave.addresses)} bursts, {len(slave.beats)} beats")


def start_slave(dut: Any, rng: np.random.Generator, lanes: int, reads: bool) -> Slave:
    """A slave that runs."""
    slave = Slave(dut, rng, lanes)
    cocotb.start_soon(slave.run_reads() if reads else slave.run_writes())
    return slave
