"""What runs and comparisons give: simulate, cosim → compare → report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts.arrays import Shape4
from accelsim.artifacts.program import Program


@dataclass(frozen=True, slots=True)
class Record:
    """One retired instruction of one engine. Cycles count from the start command."""

    engine: int
    index: int  # instruction index in the program
    start_cycle: int
    end_cycle: int
    digest: int  # 64 bits, see `accelsim.spec.digest`


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a backend did with a program."""

    backend: str  # "sim" or "rtl"
    cycles: int
    error_code: int  # 0: none; see `accelsim.spec.registers`
    error_index: int
    error_engine: int
    records: tuple[Record, ...]
    dram: Mapping[int, NDArray[np.uint8]]  # base register number → contents after the run
    semaphores: tuple[int, ...]
    counters: Mapping[str, int] = field(default_factory=dict)  # saturations, stalls, beats, …


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a program: memory contents by base register, presets and limits."""

    program: Program
    dram: Mapping[int, NDArray[np.uint8]]
    semaphores: tuple[int, ...] = ()
    cycle_limit: int = 1 << 31
    observe: bool = True  # records and digests


Backend = Callable[[Launch], RunResult]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first wrong element of a layer and who wrote it."""

    index: Shape4  # n, h, w, c
    expected: int
    actual: int
    tile: int
    instruction: int  # in the program that ran; -1 where no instruction wrote the element
    text: str  # the instruction, disassembled


@dataclass(frozen=True, slots=True)
class Comparison:
    """One tensor of one backend against one golden. `status` is one of STATUSES."""

    actual: str  # "sim" | "rtl"
    golden: str  # "integer" | "framework" | "tvm"
    mode: str  # "isolated" | "accumulated"
    elements: int
    mismatches: int
    max_abs_diff: int
    status: str
    gate: bool
    bound: int | None = None  # for "within"; every comparison of today is exact and has none
    cause: str | None = None
    first: Difference | None = None
    waived: str | None = None  # the reason in the waiver file; the gate stays what it is


# The words of report.json. "within" is a difference up to `bound`; no golden of today allows one.
STATUSES = ("equal", "within", "different", "missing")


@dataclass(frozen=True, slots=True)
class LayerReport:
    """All that is known of one layer after a run."""

    name: str
    op: str
    members: tuple[str, ...]
    placement: str  # "npu" | "host"
    elements: int
    macs: int
    tiles: int
    compare: tuple[Comparison, ...]
    cycles: Mapping[str, int]  # by backend, of the layer on its own
    waived: str | None = None  # the reason in the waiver file
    reason: str | None = None  # why it runs on the host
    facts: Mapping[str, int] = field(default_factory=dict)
