"""`Cosim`: programs on the RTL, one after another, in one persistent simulation.

What comes in: `Launch`es. What goes out: `RunResult`s. The executable is built at most once and the
process is started once. Runs follow each other without reset, after an error of the program too;
only after an exception the next launch begins with one. This module must not know how a program was
made or what its result should be.

    with Cosim(CONFIGS["edge8"]) as rtl:
        result = rtl.launch(launch)
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import mmap
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Launch, Record, RunResult
from accelsim.cosim.build import cache_root, wave_format
from accelsim.cosim.channel import Message
from accelsim.cosim.memory import MemoryOptions
from accelsim.cosim.model import build_model
from accelsim.cosim.placement import ORIGIN, Placement, check_gaps, fill_gaps
from accelsim.cosim.process import Child
from accelsim.cosim.records import read_records
from accelsim.cosim.setup import (
    AFTER_RESET,
    RESULT_REGISTERS,
    SOFT_RESET,
    START,
    launch_placement,
    launch_regions,
    register_reads,
    register_writes,
)
from accelsim.errors import InputError, RtlError, TimeLimitError, ToolError
from accelsim.spec.config import Config
from accelsim.spec.registers import address

BACKEND = "rtl"
# Beyond the watchdog: time in which engines finish, AXI drains and the interrupt rises.
GRACE_CYCLES = 1 << 20
SMALLEST_MEMORY = 1 << 20
STATUS_ERROR = 4
STATUS_RESETTING = 8

WAVE_REASON = (
    "FST is what this machine can write, or VCD where the headers of lz4 and zlib are missing "
    "(Debian: liblz4-dev, zlib1g-dev)"
)

_sequence = itertools.count()
_log = logging.getLogger(__name__)


class Cosim:
    """A persistent simulation of one configuration; `launch` is an `artifacts.Backend`.

    `memory` may be changed between launches, and `skews`: bytes, a multiple of 64, between a page
    and the region of a base register (see `placement.random_skews`). `waves` is the path of the
    waveform of the whole session (its ending is replaced by the format that this machine can
    write). `design` replaces the NPU's sources, `plusargs` go to the simulation.
    `time_limit_seconds` bounds each launch.
    Files of a session lie in `folder`, by default below build/cosim/sessions, which is deleted
    where all went well.
    """

    def __init__(
        self,
        config: Config,
        *,
        memory: MemoryOptions | None = None,
        skews: Mapping[int, int] | None = None,
        waves: Path | None = None,
        folder: Path | None = None,
        time_limit_seconds: float | None = None,
        seed: int = 1,
        design: Sequence[Path] | None = None,
        root: Path | None = None,
        plusargs: Sequence[str] = (),
        optimize: str | None = None,
        grace_cycles: int = GRACE_CYCLES,
    ) -> None:
        self.config = config
        self.memory = memory or MemoryOptions()
        self.skews: Mapping[int, int] = dict(skews or {})
        self.waves = waves.resolve().with_suffix(f".{wave_format()}") if waves else None
        if self.waves and waves and self.waves.suffix != waves.suffix:
            _log.warning("waves go to %s: %s", self.waves, WAVE_REASON)
        self.time_limit_seconds = time_limit_seconds
        self.seed = seed
        self.design = design
        self.root = root
        self.plusargs = tuple(plusargs)
        self.optimize = optimize
        self.grace_cycles = grace_cycles
        self.last_seconds = 0.0  # in the simulation, for the last launch
        self._own_folder = folder is None
        default = cache_root() / "sessions" / f"{config.name}-{os.getpid()}-{next(_sequence)}"
        self.folder = (folder or default).resolve()
        self._child: Child | None = None
        self._shared: mmap.mmap | None = None
        self._reset = False
        self._failed = False
        self._calls: dict[str, int] = {}
        self.seen: list[int] = []  # what the register accesses of the last `abandon` read

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._failed = self._failed or (
            error is not None and not isinstance(error, KeyboardInterrupt)
        )
        self.close()

    def start(self) -> None:
        """Builds the executable where needed and starts the process where it does not run."""
        if self._child is not None and self._child.alive:
            return
        executable = build_model(
            self.config,
            waves=self.waves is not None,
            design=self.design,
            root=self.root,
            optimize=self.optimize,
        )
        self._release_memory()
        self._child = Child(
            executable, self.folder, waves=self.waves, seed=self.seed, plusargs=self.plusargs
        )
        self._reset = False
        for function, value in self._calls.items():
            self.call(function, value)

    def call(self, function: str, value: int) -> None:
        """Calls a C function of the executable, now and after every restart of the process.

        It takes an unsigned int and returns nothing. The next launch begins with a reset.
        """
        self._calls[function] = value
        if self._child is not None and self._child.alive:
            self._child.ask({"do": "call", "function": function, "value": value})
            self._reset = True

    def access(self, accesses: Sequence[Sequence[int]]) -> list[int]:
        """Register accesses in order; returns what the reads gave.

        (address,) reads, (address, data, lead cycles) writes, see `registers.RegisterPort.write`.
        """
        self.start()
        assert self._child is not None
        try:
            request = {"do": "access", "accesses": [list(one) for one in accesses]}
            values: list[int] = self._child.ask(request, self.time_limit_seconds)["values"]
        except BaseException:
            self._failed = self._reset = True
            raise
        return values

    def launch(self, launch: Launch) -> RunResult:
        """Runs one program.

        Raises RtlError where an assertion fired or memory outside the regions changed,
        TimeLimitError where the interrupt does not come, ToolError where the process died.
        """
        placement, memory = self._prepare(launch)
        try:
            answer = self._run(launch, placement)
            self._check(launch, answer)
            check_gaps(memory, placement)
        except BaseException as error:
            self._failed = self._reset = True
            if launch.observe and isinstance(error, (RtlError, TimeLimitError)):
                self._explain(error, len(launch.program.words))
            raise
        self.last_seconds = answer["seconds"]
        return self._result(launch, answer, memory, placement)

    def abandon(
        self, launch: Launch, cycles: int, accesses: Sequence[Sequence[int]] = ()
    ) -> dict[int, int]:
        """Starts a program and ends it with a soft reset after so many cycles.

        `accesses` come before the reset (see `access`); what they read is in `seen`.

        Returns what registers hold then, by address; see `AFTER_RESET`. Raises RtlError where the
        reset does not end.
        """
        placement, _ = self._prepare(launch)
        request = self._request(launch, placement) | {
            "limit": cycles,
            "reads": [],
            "after": [],
            "accesses": [list(one) for one in accesses],
            "soft_reset": (*SOFT_RESET, address("STATUS"), STATUS_RESETTING, AFTER_RESET),
        }
        assert self._child is not None
        try:
            answer = self._child.ask(request, self.time_limit_seconds)
        except BaseException:
            self._failed = self._reset = True
            raise
        self._reset = False
        self.seen = list(answer["values"])
        return dict(zip(AFTER_RESET, answer["left_registers"], strict=True))

    def _prepare(self, launch: Launch) -> tuple[Placement, NDArray[np.uint8]]:
        """Starts the process where it does not run, and fills the shared memory."""
        if launch.program.config != self.config:
            raise InputError(
                f"program {launch.program.symbol} is for configuration "
                f"{launch.program.config_name}, this simulation is of {self.config.name}: "
                "compile it again."
            )
        self.start()
        regions = launch_regions(launch)
        placement = launch_placement(launch, self.skews)
        memory = self._mapped(placement.total_bytes)
        fill_gaps(memory, placement)
        memory[placement.total_bytes :] = 0
        for base, data in regions.items():
            memory[placement.offsets[base] :][: len(data)] = data
        return placement, memory

    def _run(self, launch: Launch, placement: Placement) -> Message:
        assert self._child is not None
        return self._child.ask(self._request(launch, placement), self.time_limit_seconds)

    def _request(self, launch: Launch, placement: Placement) -> Message:
        return {
            "do": "run",
            "reset": self._reset,
            "memory": asdict(self.memory),
            "records": str(self.folder / "records.bin") if launch.observe else None,
            "settings": register_writes(launch, placement),
            "start": START,
            "limit": launch.cycle_limit + self.grace_cycles,
            "reads": register_reads(),
            "after": [(address("IRQ_STATUS"), 1)],
        }

    def _check(self, launch: Launch, answer: Message) -> None:
        if not answer["interrupt"]:
            raise TimeLimitError(
                f"{launch.program.symbol} raised no interrupt within {launch.cycle_limit} cycles "
                f"and {self.grace_cycles} more: the RTL hangs beyond its own watchdog."
            )

    def _result(
        self, launch: Launch, answer: Message, memory: NDArray[np.uint8], placement: Placement
    ) -> RunResult:
        names = len(RESULT_REGISTERS)
        value = dict(zip(RESULT_REGISTERS, answer["reads"][:names], strict=True))
        failed = bool(value["STATUS"] & STATUS_ERROR)
        self._reset = False
        dram = {
            base: memory[offset : offset + placement.sizes[base]].copy()
            for base, offset in placement.offsets.items()
        }
        return RunResult(
            backend=BACKEND,
            cycles=value["CYCLES_HI"] << 32 | value["CYCLES_LO"],
            error_code=value["ERROR_CODE"] if failed else 0,
            error_index=value["ERROR_INDEX"] if failed else 0,
            error_engine=value["ERROR_ENGINE"] if failed else 0,
            records=self._records() if launch.observe else (),
            dram=dram,
            semaphores=tuple(answer["reads"][names:]),
            counters=answer["counters"],
        )

    def _records(self) -> tuple[Record, ...]:
        """Records of the last run by engine, each engine's in its order."""
        found = read_records(self.folder / "records.bin")
        return tuple(sorted(found, key=lambda r: (r.engine, r.start_cycle)))

    def _explain(self, error: RtlError | TimeLimitError, instructions: int) -> None:
        """Puts into an error what had retired; END never leaves a record."""
        with contextlib.suppress(OSError):
            found = read_records(self.folder / "records.bin")
            error.digests = {record.index: record.digest for record in found}
            missing = (i for i in range(instructions) if i not in error.digests)
            error.instruction = next(missing, None)

    def _mapped(self, size_bytes: int) -> NDArray[np.uint8]:
        """The shared memory, made larger where `size_bytes` do not fit."""
        assert self._child is not None
        if self._shared is None or len(self._shared) < size_bytes:
            self._release_memory()
            total = max(SMALLEST_MEMORY, 1 << (size_bytes - 1).bit_length())
            shared = Path("/dev/shm")
            place_in = shared if shared.is_dir() else None
            with tempfile.NamedTemporaryFile(prefix="accelsim-", dir=place_in) as file:
                try:
                    os.ftruncate(file.fileno(), total)
                    self._shared = mmap.mmap(file.fileno(), total)
                except OSError as error:
                    raise ToolError(f"shared memory of {total} bytes: {error.strerror}.") from None
                request = {"do": "map", "path": file.name, "origin": ORIGIN, "bytes": total}
                self._child.ask(request, self.time_limit_seconds)
        return np.frombuffer(self._shared, dtype=np.uint8)

    def _release_memory(self) -> None:
        if self._shared is not None:
            with contextlib.suppress(BufferError):  # a caller still looks at it
                self._shared.close()
            self._shared = None

    def close(self) -> None:
        """Ends the process and frees its memory; keeps the log where something went wrong."""
        if self._child is not None:
            self._child.close()
            self._child = None
        self._release_memory()
        if self._own_folder and not self._failed:
            shutil.rmtree(self.folder, ignore_errors=True)
