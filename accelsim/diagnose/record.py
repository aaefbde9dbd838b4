"""What a user asks for, and what was found.

What comes in: nothing. What goes out: dataclasses that the other modules fill in and print.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from accelsim.errors import InputError, ending
from accelsim.verify import VerifyOptions

VERDICTS = ("preprocessing", "quantization", "compiler", "simulator", "rtl")
NOTHING = "nothing wrong"


@dataclass(frozen=True, slots=True)
class DiagnoseOptions:
    """The command line: what `verify` takes, and which sample of the file with which class."""

    verify: VerifyOptions
    label: int | None = None
    sample: int = 0  # which of the file's batches

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        if self.label is not None and self.label < 0:
            raise InputError(f"label is {self.label}; classes count from 0")
        if self.sample < 0:
            raise InputError(f"sample is {self.sample}; samples count from 0")


@dataclass(frozen=True, slots=True)
class Rung:
    """The whole network computed in one way."""

    name: str  # "float" | "framework" | "qdq" | "integer" | "sim" | "rtl"
    title: str
    outputs: tuple[np.ndarray, ...] | None  # None where it has none, for the reason in `note`
    classes: tuple[int, ...] | None  # one a sample of the batch; None where it is no classifier
    top: tuple[tuple[int, float], ...]  # greatest elements of the first sample, by index
    output_db: float | None  # signal to noise against the float rung
    note: str = ""


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What the quantize at a model input does to the values given."""

    name: str
    low: float  # of the values
    high: float
    range_low: float  # that its int8 tensor can hold
    range_high: float
    clipped: float  # share of elements beyond that range
    levels: int  # distinct levels that the values reach

    @property
    def far(self) -> bool:
        """Whether the values reach at least twice as far as the calibrated range."""
        span = self.range_high - self.range_low
        beyond = max(self.high - self.range_high, self.range_low - self.low)
        return self.clipped >= 0.01 and beyond > span

    @property
    def faint(self) -> bool:
        """Whether values that differ fall onto next to no levels."""
        return self.low < self.high and self.levels <= 3


@dataclass(frozen=True, slots=True)
class LayerRow:
    """How much of a layer's signal is left in int8, against the float network."""

    name: str
    operator: str
    sqnr_db: float
    lost_db: float  # against the noisiest of its inputs; negative where it averages noise away
    clipped: float  # share of float elements beyond what its int8 tensor holds


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    kind: str  # one of VERDICTS
    sentence: str
    layer: str = ""  # the first layer that differs
    details: tuple[str, ...] = ()


@dataclass(slots=True)
class DiagnoseRecord:
    """Everything that a run found, also where it ended early."""

    options: DiagnoseOptions
    replay: str = ""
    input_origin: str = ""
    label: int | None = None
    rungs: list[Rung] = field(default_factory=list)
    first_change: str = ""  # name of the first rung whose class is another
    inputs: list[InputFacts] = field(default_factory=list)
    layers: list[LayerRow] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)  # the earliest rung's first
    notes: list[str] = field(default_factory=list)
    complete: bool = False
    error: str = ""
    exit_code: int = 0

    @property
    def verdict(self) -> str:
        """What is to blame; "" before the end."""
        if not self.complete:
            return ""
        return self.faults[0].kind if self.faults else NOTHING

    def fail(self, error: BaseException) -> None:
        """Note why the run ended."""
        self.error, self.exit_code = ending(error)
