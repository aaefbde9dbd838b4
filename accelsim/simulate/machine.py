"""The simulator: a launch comes in, what the NPU would do with it goes out.

Timing and values are separate: the clock runs first and says what started in which order, then the
values follow in that order (legal programs are free of races, so order decides nothing).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch, Program, Record, RunResult
from accelsim.errors import InputError
from accelsim.simulate import bugs
from accelsim.simulate.bursts import BusFault
from accelsim.simulate.decoded import Decoded
from accelsim.simulate.execute import Executor
from accelsim.simulate.hazards import analyse
from accelsim.simulate.memory import new_memory
from accelsim.simulate.prepared import SEMAPHORES, Prepared, decode_for, traffic_of
from accelsim.simulate.timeline import Timeline
from accelsim.simulate.timing import Timer
from accelsim.spec.config import Config
from accelsim.spec.isa import BASE_REGISTERS, PROGRAM_BASE, WEIGHTS_BASE
from accelsim.spec.registers import token_presets

DEFAULT_LATENCY, LEAST_LATENCY = 32, 2
Regions = Mapping[int, NDArray[np.uint8]]


class Simulator:
    """Simulates one configuration; what it learned of a program serves later launches."""

    def __init__(
        self,
        config: Config,
        *,
        latency: int = DEFAULT_LATENCY,
        values: bool = True,
        checks: bool = True,
        base_addresses: Mapping[int, int] | None = None,
        bus_faults: Sequence[BusFault] = (),
        bug: str | None = None,
    ) -> None:
        """`latency` in cycles of the memory; `values=False` computes cycles only.

        `checks=False` leaves the static analysis out, so that a program that is wrong runs as far
        as hardware would run it. `base_addresses` are bus addresses of the base registers (0 where
        left out); only their distance from a 4 KiB boundary matters. `bug` plants one of
        `bugs.BUGS` behind the analysis.
        """
        self.config, self.latency, self.values, self.checks = config, latency, values, checks
        self.base_addresses = dict(base_addresses or {})
        self.bus_faults, self.bug = tuple(bus_faults), bug
        if latency < LEAST_LATENCY:
            raise InputError(f"memory latency is {latency} cycles, use {LEAST_LATENCY} or more")
        if bug:
            bugs.find(bug)
        self._prepared: dict[tuple[object, ...], Prepared] = {}
        self._analysed: set[tuple[object, ...]] = set()

    def run(self, launch: Launch) -> RunResult:
        """Run a program. Raises ProgramError for what RTL has no error code for."""
        dram = regions(launch)
        presets = token_presets(launch.semaphores)
        prepared = self.prepare(launch.program, dram, presets)
        timer = Timer(
            prepared.decoded,
            self.config,
            prepared.traffic,
            self.latency,
            presets,
            launch.cycle_limit,
        )
        return self._result(launch, dram, timer.run())

    def prepare(
        self, program: Program, dram: Regions, presets: Sequence[int] = (0,) * SEMAPHORES
    ) -> Prepared:
        """Decode, check and analyse a program once for all launches with regions of these sizes."""
        sizes = tuple(dram[b].size if b in dram else 0 for b in range(BASE_REGISTERS))
        key = (program.words.tobytes(), program.opcode_mask, program.contract_hash, sizes)
        if key not in self._prepared:
            decoded = decode_for(program, self.config, sizes)
            self._prepared[key] = self._ready(decoded)
        prepared = self._prepared[key]
        analysis = (*key, tuple(presets), program.partial)
        if self.checks and analysis not in self._analysed and not prepared.decoded.violation:
            ops = decode_for(program, self.config, sizes).ops if self.bug else prepared.decoded.ops
            analyse(ops, self.config, presets, sizes, program.partial)
            self._analysed.add(analysis)
        return prepared

    def _ready(self, decoded: Decoded) -> Prepared:
        if self.bug:
            decoded = replace(decoded, ops=bugs.plant(decoded.ops, self.bug, self.config))
        traffic = traffic_of(decoded, self.config, self.base_addresses, self.bus_faults)
        return Prepared(decoded, traffic)

    def _result(
        self, launch: Launch, dram: dict[int, NDArray[np.uint8]], timeline: Timeline
    ) -> RunResult:
        counters: Counter[str] = Counter(timeline.counters)
        records = []
        stored = {e.op.values["base_reg"] for e in timeline.retired if e.op.name == "store"}
        memory = new_memory(self.config, dram, stored)
        executor = Executor(memory, launch.observe)
        for entry in timeline.retired:
            op = entry.op
            counters[f"op_{op.name}"] += 1
            if self.bug:
                executor.rounding = bugs.rounding(self.bug, op)
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


def run(launch: Launch) -> RunResult:
    """Simulate one launch with the defaults: an `artifacts.Backend`."""
    return Simulator(launch.program.config).run(launch)
