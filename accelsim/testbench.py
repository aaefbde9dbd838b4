"""The bench API: a test builds a program, runs it on simulator and RTL, and compares.

What comes in: assembler text or a `Region`, memory contents, expected values. What goes out:
results by backend, or an AssertionError that names what differs first. It must not know pytest:
`accelsim.pytest_plugin` makes a `Bench` for each test. docs/bench-api.md is its manual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, Launch, Program, Region, RunResult, bare_program
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.session import Cosim
from accelsim.emit import compile_region, launch_memory, read_tensor
from accelsim.errors import InputError
from accelsim.simulate import Simulator
from accelsim.spec.assembler import assemble, disassemble_one
from accelsim.spec.config import ENGINES, Config
from accelsim.spec.encoding import contract_hash, decode
from accelsim.spec.isa import PROGRAM_BASE, WEIGHTS_BASE

Results = dict[str, RunResult]
Memory = Mapping[int, NDArray[np.generic]]


class Bench:
    """Programs on the backends of one configuration.

    `backends` are "sim", "rtl" or both. `cosim` is the RTL to run on, None without "rtl".
    """

    def __init__(
        self,
        config: Config,
        backends: Sequence[str],
        cosim: Cosim | None,
        *,
        seed: int = 1,
        wave_folder: Path | None = None,
        waves: bool = False,
    ) -> None:
        """`waves` records every RTL run in `wave_folder`; otherwise only `record_failure` does."""
        self.config, self.backends, self.seed = config, tuple(backends), seed
        self.wave_folder = wave_folder or Path("build/waves")
        self._waves = waves
        self._traced: Cosim | None = None
        self._cosim = cosim
        self._last: tuple[Launch, MemoryOptions] | None = None

    # ------------------------------------------------------------------------------- programs
    def assemble(self, text: str, name: str = "program") -> Program:
        """A program of assembler text, with no tensors: memory is given and read as bytes.

        Raises ProgramError that names line, word and what is legal.
        """
        words = assemble(text, self.config)
        opcodes = {decode(row)[0].opcode for row in words}
        return bare_program(
            symbol=name,
            config=self.config,
            words=words,
            opcode_mask=sum(1 << opcode for opcode in opcodes),
            contract_hash=contract_hash(opcodes, self.config),
        )

    def compile(self, region: Region) -> Program:
        """A program of layers over named tensors. Raises ModelError for a layer that fits not."""
        return compile_region(region, self.config)

    # ------------------------------------------------------------------------------------ runs
    def run(
        self,
        program: Program,
        tensors: Mapping[str, I8] | None = None,
        *,
        memory: Memory | None = None,
        semaphores: Sequence[int] = (),
        stalls: bool = False,
        memory_latency: int = 32,
        cycle_limit: int = 1 << 24,
    ) -> Results:
        """Run on every backend, in order.

        `tensors` are int8 (n, h, w, c) by name, for compiled programs. `memory` are contents by
        base register as bytes or whole arrays, which replace what `tensors` put there; a size
        register holds the size of its array. `stalls` lets the RTL's memory stall at random.
        Raises InputError, ProgramError, TimeLimitError or RtlError.
        """
        dram = launch_memory(program, tensors or {}) if program.tensors else {}
        for base, data in (memory or {}).items():
            if base in (PROGRAM_BASE, WEIGHTS_BASE) and program.tensors:
                raise InputError(f"base register {base} holds the compiled program's own data")
            dram[base] = np.ascontiguousarray(data).reshape(-1).view(np.uint8).copy()
        launch = Launch(program, dram, tuple(semaphores), cycle_limit)
        options = random_stalls(self.seed, memory_latency)
        if not stalls:
            options = MemoryOptions(latency=memory_latency, seed=self.seed)
        self._last = (launch, options)
        return {name: self._run(name, launch, options) for name in self.backends}

    def _run(self, name: str, launch: Launch, options: MemoryOptions) -> RunResult:
        if name == "sim":
            return Simulator(self.config, latency=options.latency).run(launch)
        cosim = self._tracing("run") if self._waves else self._cosim
        if cosim is None:
            raise InputError(f"backend {name!r} was not chosen: use --accelsim-backend {name}")
        cosim.memory = options
        return cosim.launch(launch)

    def _tracing(self, name: str) -> Cosim:
        if self._traced is None:
            self.wave_folder.mkdir(parents=True, exist_ok=True)
            path = self.wave_folder / f"{name}.fst"
            self._traced = Cosim(self.config, waves=path, seed=self.seed)
        return self._traced

    def record_failure(self) -> Path | None:
        """Repeat the last run on the RTL with a waveform; its path, or None without an RTL run."""
        if self._last is None or "rtl" not in self.backends:
            return None
        launch, options = self._last
        cosim = self._tracing("failure")
        if not self._waves:
            cosim.memory = options
            cosim.launch(launch)
        self.close()
        return cosim.waves

    def close(self) -> None:
        """End the simulation that writes waveforms. The shared one goes on."""
        if self._traced is not None:
            self._traced.close()
            self._traced = None

    # ------------------------------------------------------------------------------ comparisons
    def tensor(self, program: Program, result: RunResult, name: str) -> I8:
        """A tensor of a compiled program after a run, int8 (n, h, w, c)."""
        return read_tensor(program, result.dram, name)

    def check_tensor(self, program: Program, results: Results, name: str, expected: I8) -> None:
        """Every backend ended without error and its tensor equals `expected` in every bit."""
        if np.asarray(expected).size == 0:
            raise InputError(f"tensor {name}: the expected array is empty, it proves nothing")
        self.check_ended(program, results)
        for backend, result in results.items():
            actual = self.tensor(program, result, name)
            if actual.shape != np.shape(expected):
                raise AssertionError(f"{backend}: {name} has shape {actual.shape}")
            _refuse(f"{backend}: tensor {name}", actual, np.asarray(expected))

    def check_memory(
        self, results: Results, base: int, expected: NDArray[np.generic], offset_bytes: int = 0
    ) -> None:
        """Bytes behind a base register equal `expected` on every backend."""
        wanted = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
        if wanted.size == 0:
            raise InputError(f"base register {base}: the expected array is empty")
        for backend, result in results.items():
            actual = result.dram[base][offset_bytes : offset_bytes + wanted.size]
            _refuse(f"{backend}: base register {base} from byte {offset_bytes}", actual, wanted)

    def check_ended(self, program: Program, results: Results) -> None:
        """Every backend ran to END."""
        for backend, result in results.items():
            if result.error_code:
                text = _instruction(program, result.error_index)
                raise AssertionError(f"{backend}: error {result.error_code} at {text}")

    def check_same(self, program: Program, results: Results, *, cycles: bool = True) -> None:
        """All backends agree: error, memory, semaphores, and each instruction's digest.

        With `cycles` also when each instruction started and ended, which is exact unless the
        memory stalls at random.
        """
        (first, one), *others = results.items()
        for name, other in others:
            for what in ("error_code", "error_index", "error_engine", "semaphores"):
                left, right = getattr(one, what), getattr(other, what)
                if left != right:
                    raise AssertionError(f"{what}: {first} has {left}, {name} has {right}")
            self._check_records(program, (first, one), (name, other), cycles)
            for base in sorted(one.dram.keys() & other.dram.keys()):
                _refuse(f"{name}: base register {base}", other.dram[base], one.dram[base])

    def _check_records(
        self,
        program: Program,
        one: tuple[str, RunResult],
        other: tuple[str, RunResult],
        cycles: bool,
    ) -> None:
        if len(one[1].records) != len(other[1].records):
            counts = f"{len(one[1].records)} and {len(other[1].records)}"
            raise AssertionError(f"{one[0]} and {other[0]} retired {counts} instructions")
        pairs = zip(one[1].records, other[1].records, strict=True)
        for left, right in sorted(pairs, key=lambda pair: pair[0].index):
            where = f"{_instruction(program, left.index)} ({ENGINES[left.engine]})"
            if (left.engine, left.index, left.digest) != (right.engine, right.index, right.digest):
                raise AssertionError(f"{one[0]} and {other[0]} wrote different values at {where}")
            times = (left.start_cycle, left.end_cycle), (right.start_cycle, right.end_cycle)
            if cycles and times[0] != times[1]:
                raise AssertionError(
                    f"{one[0]} and {other[0]} took different cycles, {times[0]} and {times[1]}, "
                    f"at {where}"
                )


def _instruction(program: Program, index: int) -> str:
    return f"instruction {index}: {disassemble_one(program.words[index], index)}"


def _refuse(what: str, actual: NDArray[np.generic], expected: NDArray[np.generic]) -> None:
    wrong = np.flatnonzero(actual.reshape(-1) != expected.reshape(-1))
    if actual.size != expected.size:
        raise AssertionError(f"{what}: {actual.size} elements, expected {expected.size}")
    if wrong.size:
        at = tuple(int(i) for i in np.unravel_index(wrong[0], expected.shape))
        raise AssertionError(
            f"{what}: {wrong.size} of {expected.size} elements differ, first at {at}: "
            f"expected {expected[at]}, got {actual.reshape(expected.shape)[at]}"
        )
