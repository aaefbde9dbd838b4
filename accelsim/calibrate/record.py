"""What a quantization has found so far, written out at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelsim.calibrate.layers import LayerFacts
from accelsim.calibrate.options import QuantizeOptions
from accelsim.calibrate.placement import Placement
from accelsim.calibrate.sensitivity import Sensitivity
from accelsim.calibrate.trials import Choice, Trial
from accelsim.errors import INTERRUPTED, TimeLimitError, ending


@dataclass(slots=True)
class QuantizeRecord:
    """State of one run. Until it ends it is incomplete, with the exit code of an interruption."""

    options: QuantizeOptions
    started: str = ""  # UTC
    status: str = "incomplete"
    exit_code: int = INTERRUPTED
    error: str | None = None
    calibration: str = ""  # where the calibration samples come from
    calibration_samples: int = 0
    test: str = ""  # where the labelled samples come from, "" without any
    test_samples: int = 0
    trials: list[Trial] = field(default_factory=list)
    choice: Choice | None = None
    pairs: Sequence[str] = ()  # of layers that share their ranges of weights
    accuracy_float: dict[str, float] = field(default_factory=dict)
    accuracy_int8: dict[str, float] = field(default_factory=dict)
    output_db: float | None = None
    layers: tuple[LayerFacts, ...] = ()
    sensitivity: list[Sensitivity] = field(default_factory=list)
    placement: Placement | None = None
    kept_float: tuple[str, ...] = ()  # operators or modules, as given or as placement chose
    host_layers: tuple[str, ...] = ()  # layers of the quantized network that they are part of
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    @property
    def loss(self) -> float | None:
        """What the first number of the metric lost; None without labels."""
        if not self.accuracy_float or not self.accuracy_int8:
            return None
        return next(iter(self.accuracy_float.values())) - next(iter(self.accuracy_int8.values()))

    @property
    def found(self) -> bool:
        """Whether there is more to tell than why the run ended."""
        return bool(self.trials) or not self.error

    def fail(self, error: BaseException) -> None:
        """Note why the run ended."""
        self.error, self.exit_code = ending(error)
        if not isinstance(error, (KeyboardInterrupt, TimeLimitError)):
            self.status = "error"
