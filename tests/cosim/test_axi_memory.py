"""The AXI memory model: timing cycle by cycle, data, stalls, errors, and each assertion firing."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from accelsim.cosim.memory import MemoryOptions, SimulatedMemory, random_stalls
from accelsim.cosim.streams import reset, seeded_rng
from accelsim.cosim.unit import AXI_MEMORY, AXI_MEMORY_CPP, rtl, run_unit

pytestmark = pytest.mark.rtl

ORIGIN = 0x40_0000_0000
SIZE = 1 << 16
LATENCY = 11


def run(only: str, width: int = 64, expect_failure: str | None = None, seed: int = 1) -> None:
    run_unit(
        "axi_memory",
        rtl(*AXI_MEMORY),
        __name__,
        only=only,
        cpp_sources=rtl(*AXI_MEMORY_CPP),
        seed=seed,
        parameters={"DataWidth": width},
        expect_failure=expect_failure,
    )


@pytest.mark.parametrize("width", [64, 256])
def test_timing_and_data_follow_the_contract(width: int) -> None:
    run("check_(timing|data|errors|outside|stalls)", width=width)


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        ("ar_unstable", "AR changed"),
        ("aw_unstable", "AW changed"),
        ("w_unstable", "W changed"),
        ("ar_page", "a read burst crosses 4 KiB"),
        ("aw_page", "a write burst crosses 4 KiB"),
        ("ar_kind", "a read burst is not of full width"),
        ("aw_kind", "a write burst is not of full width"),
        ("last_early", "WLAST at the wrong beat"),
        ("last_late", "WLAST at the wrong beat"),
    ],
)
def test_each_assertion_on_the_master_fires(violation: str, message: str) -> None:
    run(f"violate_{violation}$", expect_failure=message)


@pytest.mark.parametrize(("channel", "message"), [("b", "B changed"), ("r", "R changed")])
def test_each_assertion_on_the_memory_fires(channel: str, message: str) -> None:
    run_unit(
        "axi_protocol",
        rtl("tb/axi_protocol.sv"),
        __name__,
        only=f"unstable_{channel}$",
        expect_failure=message,
    )


# ------------------------------------------------------------------------------------ cocotb side
@dataclass
class Log:
    """Handshakes by cycle, as seen on the pins."""

    cycle: int = 0
    ar: list[int] = field(default_factory=list)
    aw: list[int] = field(default_factory=list)
    w_last: list[int] = field(default_factory=list)
    r: list[tuple[int, int, int, int]] = field(default_factory=list)  # cycle, data, resp, last
    b: list[tuple[int, int]] = field(default_factory=list)  # cycle, resp


class Bench:
    """An AXI master that issues queued requests as fast as ready allows and logs every cycle."""

    def __init__(self, dut: Any, options: MemoryOptions) -> None:
        self.dut = dut
        self.beat_bytes = len(dut.rdata_o) // 8
        self.memory = SimulatedMemory()
        self.array = self.memory.map(ORIGIN, SIZE)
        self.memory.configure(options)
        self.log = Log()
        self.reads: list[tuple[int, int]] = []  # offset, beats
        self.writes: list[tuple[int, list[int]]] = []  # offset, words
        self.strobe = (1 << self.beat_bytes) - 1
        self.ready_chance = 1.0
        self.rng = seeded_rng("bench")

    async def start(self) -> None:
        await reset(self.dut)
        self.dut.arsize_i.value = self.dut.awsize_i.value = self.beat_bytes.bit_length() - 1
        self.dut.arburst_i.value = self.dut.awburst_i.value = 1
        cocotb.start_soon(self._watch())
        cocotb.start_soon(self._read_channel())
        cocotb.start_soon(self._write_address_channel())
        cocotb.start_soon(self._write_data_channel())

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            rready = bready = int(self.rng.random() < self.ready_chance)
            dut.rready_i.value, dut.bready_i.value = rready, bready
            await RisingEdge(dut.clk_i)
            now = self.log.cycle
            if dut.arvalid_i.value == 1 and dut.arready_o.value == 1:
                self.log.ar.append(now)
            if dut.awvalid_i.value == 1 and dut.awready_o.value == 1:
                self.log.aw.append(now)
            if dut.wvalid_i.value == 1 and dut.wready_o.value == 1 and dut.wlast_i.value == 1:
                self.log.w_last.append(now)
            if dut.rvalid_o.value == 1 and rready:
                last, resp = int(dut.rlast_o.value), int(dut.rresp_o.value)
                self.log.r.append((now, int(dut.rdata_o.value), resp, last))
            if dut.bvalid_o.value == 1 and bready:
                self.log.b.append((now, int(dut.bresp_o.value)))
            self.log.cycle += 1

    async def _handshake(self, valid: Any, ready: Any) -> None:
        valid.value = 1
        while True:
            await RisingEdge(self.dut.clk_i)
            if ready.value == 1:
                break
        valid.value = 0

    async def _read_channel(self) -> None:
        while True:
            if not self.reads:
                await RisingEdge(self.dut.clk_i)
                continue
            offset, beats = self.reads.pop(0)
            self.dut.araddr_i.value, self.dut.arlen_i.value = ORIGIN + offset, beats - 1
            await self._handshake(self.dut.arvalid_i, self.dut.arready_o)

    async def _write_address_channel(self) -> None:
        self.data_queue: list[list[int]] = []
        while True:
            if not self.writes:
                await RisingEdge(self.dut.clk_i)
                continue
            offset, words = self.writes.pop(0)
            self.data_queue.append(words)
            self.dut.awaddr_i.value, self.dut.awlen_i.value = ORIGIN + offset, len(words) - 1
            await self._handshake(self.dut.awvalid_i, self.dut.awready_o)

    async def _write_data_channel(self) -> None:
        while True:
            if not self.data_queue:
                await RisingEdge(self.dut.clk_i)
                continue
            words = self.data_queue.pop(0)
            for index, word in enumerate(words):
                self.dut.wdata_i.value, self.dut.wstrb_i.value = word, self.strobe
                self.dut.wlast_i.value = int(index == len(words) - 1)
                await self._handshake(self.dut.wvalid_i, self.dut.wready_o)

    async def drain(self, reads: int, writes: int, limit: int = 20_000) -> None:
        for _ in range(limit):
            done = sum(entry[3] for entry in self.log.r)
            if done == reads and len(self.log.b) == writes:
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"{reads} reads and {writes} writes not finished in {limit} cycles")


def expected_schedule(
    requests: list[tuple[int, str, int]], latency: int
) -> tuple[list[int], list[int]]:
    """Cycles of R beats and of B responses for (arrival, kind, beats), from the contract."""
    free = 0
    r_cycles: list[int] = []
    b_cycles: list[int] = []
    for arrival, kind, beats in sorted(requests, key=lambda q: (q[0], q[1] != "r")):
        start = max(arrival + latency, free)
        free = start + beats
        if kind == "r":
            r_cycles += range(start, start + beats)
        else:
            b_cycles.append(start + beats)
    return r_cycles, b_cycles


def random_bursts(rng: random.Random, beat_bytes: int, count: int) -> list[tuple[int, int]]:
    """(offset, beats) of bursts that stay within 4 KiB."""
    bursts = []
    for _ in range(count):
        page = rng.randrange(SIZE // 4096)
        start = rng.randrange(4096 // beat_bytes)
        longest = min(4096 // beat_bytes - start, rng.choice([1, 2, 16, 256]))
        bursts.append((page * 4096 + start * beat_bytes, rng.randint(1, longest)))
    return bursts


@cocotb.test()
async def check_timing(dut: Any) -> None:
    bench = Bench(dut, MemoryOptions(latency=LATENCY))
    await bench.start()
    rng = seeded_rng("timing")
    reads = random_bursts(rng, bench.beat_bytes, 40)
    writes = random_bursts(rng, bench.beat_bytes, 40)
    bench.reads = list(reads)
    bits = 8 * bench.beat_bytes
    bench.writes = [(offset, [rng.getrandbits(bits)] * beats) for offset, beats in writes]
    await bench.drain(len(reads), len(writes))
    log = bench.log
    arrivals = [max(pair) for pair in zip(log.aw, log.w_last, strict=True)]
    requests = [(t, "r", n) for t, (_, n) in zip(log.ar, reads, strict=True)]
    requests += [(t, "w", n) for t, (_, n) in zip(arrivals, writes, strict=True)]
    r_cycles, b_cycles = expected_schedule(requests, LATENCY)
    assert [entry[0] for entry in log.r] == r_cycles
    assert [entry[0] for entry in log.b] == b_cycles
    assert log.ar[:20] == list(range(log.ar[0], log.ar[0] + 20)), "AR was not always ready"


async def exercise_data(bench: Bench, rounds: int) -> None:
    """Random writes, then random reads, against a plain bytearray."""
    rng = seeded_rng("data")
    width = bench.beat_bytes
    shadow = bytearray(rng.randbytes(SIZE))
    bench.array[:] = list(shadow)
    await bench.start()
    bench.strobe = rng.getrandbits(width) | 1
    for _ in range(rounds):
        log = bench.log
        log.r.clear()
        log.b.clear()
        for offset, beats in random_bursts(rng, width, 10):
            words = [rng.getrandbits(8 * width) for _ in range(beats)]
            bench.writes.append((offset, words))
            for beat, word in enumerate(words):
                for lane, byte in enumerate(word.to_bytes(width, "little")):
                    if bench.strobe >> lane & 1:
                        shadow[offset + beat * width + lane] = byte
        await bench.drain(0, 10)
        reads = random_bursts(rng, width, 10)
        bench.reads = list(reads)
        await bench.drain(10, 10)
        want = [
            int.from_bytes(shadow[at : at + width], "little")
            for offset, beats in reads
            for at in range(offset, offset + beats * width, width)
        ]
        assert [entry[1] for entry in log.r] == want
        assert all(entry[2] == 0 for entry in log.r) and all(resp == 0 for _, resp in log.b)
    assert bench.array.tobytes() == bytes(shadow)


@cocotb.test()
async def check_data(dut: Any) -> None:
    await exercise_data(Bench(dut, MemoryOptions(latency=2)), rounds=3)


@cocotb.test()
async def check_stalls(dut: Any) -> None:
    bench = Bench(dut, random_stalls(seed=5, latency=4))
    bench.ready_chance = 0.6
    bench.memory.clear_counters()
    await exercise_data(bench, rounds=4)
    counters = bench.memory.counters()
    assert counters.not_ready_cycles > 0 and counters.r_stall_cycles > 0
    assert counters.b_stall_cycles > 0 and counters.read_bursts == counters.write_bursts == 40


@cocotb.test()
async def check_errors(dut: Any) -> None:
    low = ORIGIN + 4096
    options = MemoryOptions(
        latency=3, error_low=low, error_high=low + 64, error_reads=1, error_writes=1
    )
    bench = Bench(dut, options)
    bench.array[:] = 7
    await bench.start()
    bench.reads = [(0, 2), (4096, 1), (4096 + 64, 1)]
    bench.writes = [(4096 + 64, [1]), (4096, [1, 1])]
    await bench.drain(3, 2)
    assert [entry[2] for entry in bench.log.r] == [0, 0, 2, 0]
    assert [resp for _, resp in bench.log.b] == [0, 2]
    assert bench.array[4096] == 7 and bench.array[4096 + 64] == 1


@cocotb.test()
async def check_outside(dut: Any) -> None:
    bench = Bench(dut, MemoryOptions(latency=3))
    await bench.start()
    bench.reads = [(SIZE, 1), (-4096, 1), (SIZE - bench.beat_bytes, 1)]
    bench.writes = [(SIZE, [1])]
    await bench.drain(3, 1)
    assert [entry[2] for entry in bench.log.r] == [3, 3, 0]
    assert bench.log.b[0][1] == 3


async def _violate(dut: Any, channel: str, changes: dict[str, int], options: MemoryOptions) -> None:
    """Presents a request for some cycles, then applies `changes` whether it was ready or not."""
    bench = Bench(dut, options)
    await bench.start()
    await ClockCycles(dut.clk_i, 2)
    getattr(dut, f"{channel}valid_i").value = 1
    await ClockCycles(dut.clk_i, 6)
    for name, value in changes.items():
        getattr(dut, name).value = value
    await ClockCycles(dut.clk_i, 6)


STUCK = MemoryOptions(ready_stall=255, seed=3)


@cocotb.test()
async def violate_ar_unstable(dut: Any) -> None:
    await _violate(dut, "ar", {"araddr_i": ORIGIN + 64}, STUCK)


@cocotb.test()
async def violate_aw_unstable(dut: Any) -> None:
    await _violate(dut, "aw", {"awvalid_i": 0}, STUCK)


@cocotb.test()
async def violate_w_unstable(dut: Any) -> None:
    await _violate(dut, "w", {"wdata_i": 1}, STUCK)


@cocotb.test()
async def violate_ar_page(dut: Any) -> None:
    bench = Bench(dut, MemoryOptions())
    await bench.start()
    bench.reads = [(4096 - bench.beat_bytes, 2)]
    await ClockCycles(dut.clk_i, 5)


@cocotb.test()
async def violate_aw_page(dut: Any) -> None:
    bench = Bench(dut, MemoryOptions())
    await bench.start()
    bench.writes = [(4096 - bench.beat_bytes, [0, 0])]
    await ClockCycles(dut.clk_i, 5)


@cocotb.test()
async def violate_ar_kind(dut: Any) -> None:
    bench = Bench(dut, MemoryOptions())
    await bench.start()
    dut.arburst_i.value = 0
    bench.reads = [(0, 1)]
    await ClockCycles(dut.clk_i, 5)


@cocotb.test()
async def violate_aw_kind(dut: Any) -> None:
    bench = Bench(dut, MemoryOptions())
    await bench.start()
    dut.awsize_i.value = 0
    bench.writes = [(0, [0])]
    await ClockCycles(dut.clk_i, 5)


@cocotb.test()
async def violate_last_early(dut: Any) -> None:
    await _violate(dut, "w", {"wlast_i": 1, "awvalid_i": 1, "awlen_i": 9}, MemoryOptions())


@cocotb.test()
async def violate_last_late(dut: Any) -> None:
    changes = {"awvalid_i": 1, "awlen_i": 0, "wlast_i": 0}
    await _violate(dut, "w", changes, MemoryOptions())


async def _response_changes(dut: Any, channel: str) -> None:
    """A response that is not taken and changes, on the assertions alone."""
    await reset(dut)
    getattr(dut, f"{channel}valid_i").value = 1
    await ClockCycles(dut.clk_i, 3)
    getattr(dut, f"{channel}resp_i").value = 2
    await ClockCycles(dut.clk_i, 3)


@cocotb.test()
async def unstable_b(dut: Any) -> None:
    await _response_changes(dut, "b")


@cocotb.test()
async def unstable_r(dut: Any) -> None:
    await _response_changes(dut, "r")
