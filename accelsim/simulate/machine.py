"""The simulator: a launch comes in, what the NPU would do with it goes out.

Timing and values are separate: the clock runs first and says what started in which order, then the
values follow in that order (legal programs are free of races, so order decides nothing).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch, Program, Record, RunResult
from accelsim.errors import InputError
from accelsim.simulate.bursts import BusFault, burst_beats, meets_fault
from accelsim.simulate.decoded import Decoded, Op, decode_program
from accelsim.simulate.execute import Executor
from accelsim.simulate.memory import new_memory
from accelsim.simulate.timing import Timeline, Timer, Traffic
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.isa import BASE_REGISTERS, INSTRUCTION_BYTES, PROGRAM_BASE, WEIGHTS_BASE

DEFAULT_LATENCY = 32
SEMAPHORES = len(ENGINES) ** 2


@dataclass(frozen=True, slots=True)
class Prepared:
    """What of a program does not change from launch to launch."""

    decoded: Decoded
    traffic: Traffic


class Simulator:
    """Simulates one configuration; what it learned of a program serves later launches."""

    def __init__(
        self,
        config: Config,
        *,
        latency: int = DEFAULT_LATENCY,
        values: bool = True,
        base_addresses: Mapping[int, int] | None = None,
        bus_faults: Sequence[BusFault] = (),
    ) -> None:
        """`latency` in cycles of the memory; `values=False` computes cycles only."""
        self.config, self.latency, self.values = config, latency, values
        self.base_addresses = dict(base_addresses or {})
        self.bus_faults = tuple(bus_faults)
        self._prepared: dict[tuple[object, ...], Prepared] = {}

    def run(self, launch: Launch) -> RunResult:
        """Run a program. Raises ProgramError for what RTL has no error code for."""
        program = launch.program
        dram = regions(launch)
        prepared = self.prepare(program, dram)
        presets = presets_of(launch)
        timer = Timer(
            prepared.decoded,
            self.config,
            prepared.traffic,
            self.latency,
            presets,
            launch.cycle_limit,
        )
        timeline = timer.run()
        return self._result(launch, dram, timeline)

    def prepare(self, program: Program, dram: Mapping[int, NDArray[np.uint8]]) -> Prepared:
        """Decode, check and analyse a program once for all launches with regions of these sizes."""
        sizes = tuple(dram[b].size if b in dram else 0 for b in range(BASE_REGISTERS))
        key = (program.words.tobytes(), program.opcode_mask, program.contract_hash, sizes)
        if key not in self._prepared:
            decoded = decode_program(
                program.words, self.config, program.opcode_mask, program.contract_hash, sizes
            )
            self._prepared[key] = Prepared(decoded, self._traffic(decoded))
        return self._prepared[key]

    def _traffic(self, decoded: Decoded) -> Traffic:
        lanes, faults = self.config.lanes, self.bus_faults
        bursts = [
            burst_beats(op.values, lanes, self.base_addresses.get(op.values["base_reg"], 0))
            if op.name in ("load", "store")
            else []
            for op in decoded.ops
        ]
        failing = frozenset(
            op.index
            for op in decoded.ops
            if op.name in ("load", "store")
            and meets_fault(op.values, lanes, op.name == "store", faults)
        )
        fetches = frozenset(
            index
            for f in faults
            if f.base == PROGRAM_BASE and f.reads
            for index in range(
                f.first_byte // INSTRUCTION_BYTES, -(-f.end_byte // INSTRUCTION_BYTES)
            )
        )
        return Traffic(bursts, failing, fetches)

    def _result(
        self, launch: Launch, dram: dict[int, NDArray[np.uint8]], timeline: Timeline
    ) -> RunResult:
        counters: Counter[str] = Counter(timeline.counters)
        records = []
        memory = new_memory(self.config, dram)
        executor = Executor(memory, launch.observe)
        for entry in timeline.retired:
            op: Op = entry.op
            counters[f"op_{op.name}"] += 1
            digest = executor.run(op) if self.values else 0
            if launch.observe and entry.end >= 0:
                records.append(Record(op.engine, op.index, entry.start, entry.end, digest))
        counters["saturated_low"] = executor.saturated_low
        counters["saturated_high"] = executor.saturated_high
        fault = timeline.fault
        return RunResult(
            "sim",
            timeline.cycles,
            int(fault.code) if fault else 0,
            fault.index if fault else 0,
            fault.engine if fault else 0,
            tuple(sorted(records, key=lambda r: (r.engine, r.start_cycle))),
            memory.dram,
            timeline.semaphores,
            dict(counters),
        )


def regions(launch: Launch) -> dict[int, NDArray[np.uint8]]:
    """DRAM regions of a launch; the program and its constants are filled in if left out."""
    program = launch.program
    dram = dict(launch.dram)
    words = np.ascontiguousarray(program.words, dtype="<u4")
    dram.setdefault(PROGRAM_BASE, words.view(np.uint8).reshape(-1))
    if program.constants:
        dram.setdefault(WEIGHTS_BASE, np.frombuffer(program.constants, np.uint8))
    return dram


def presets_of(launch: Launch) -> tuple[int, ...]:
    """Sixteen preset tokens. Raises InputError for another number of them."""
    if not launch.semaphores:
        return (0,) * SEMAPHORES
    if len(launch.semaphores) != SEMAPHORES:
        raise InputError(
            f"a launch has {len(launch.semaphores)} semaphore presets, use {SEMAPHORES} or none"
        )
    return tuple(launch.semaphores)


def run(launch: Launch) -> RunResult:
    """Simulate one launch with the defaults: an `artifacts.Backend`."""
    return Simulator(launch.program.config).run(launch)
