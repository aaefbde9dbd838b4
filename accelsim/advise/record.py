"""What a user asks for, and what was found.

What comes in: nothing. What goes out: dataclasses that the other modules fill in and print.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from accelsim.errors import ending
from accelsim.spec.config import Config


@dataclass(frozen=True, slots=True)
class AdviseOptions:
    """The command line."""

    model: str
    config: Config
    apply: tuple[str, ...] = ()  # RULE or RULE:LAYER
    epochs: int = 6  # of the training after a replacement; 0 for none
    out: Path | None = None  # folder for the changed network
    data: str | None = None
    test: str | None = None
    metric: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One layer that could run better."""

    layer: str
    operator: str
    problem: str
    share: float  # of the network's cycles; 0 on the host
    rules: tuple[str, ...]  # replacements that fit the layer


@dataclass(frozen=True, slots=True)
class Costs:
    """What a network costs on the NPU, for one run of its own batch."""

    cycles: int
    dram_bytes: int  # loaded and stored
    macs: int
    host_layers: int
    layer_cycles: dict[str, int]


@dataclass(slots=True)
class Change:
    """The network before and after the replacements."""

    replaced: list[str]  # "layer: rule"
    snr_db: float | None = None  # float outputs after, before training, against those before
    trained_epochs: int = 0
    accuracy: dict[str, dict[str, float]] = field(default_factory=dict)
    # "float before", "int8 before", "float replaced", "float trained", "int8 trained" → metric
    before: Costs | None = None
    after: Costs | None = None
    written: str = ""


@dataclass(slots=True)
class AdviseRecord:
    """Everything that a run found, also where it ended early."""

    options: AdviseOptions
    costs: Costs | None = None
    findings: list[Finding] = field(default_factory=list)
    change: Change | None = None
    error: str = ""
    exit_code: int = 0

    def fail(self, error: BaseException) -> None:
        """Note why the run ended."""
        self.error, self.exit_code = ending(error)
