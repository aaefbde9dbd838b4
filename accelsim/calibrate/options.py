"""What a user asked of `accelsim quantize`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from accelsim.errors import InputError
from accelsim.quantize.observers import KINDS, PERCENTILE

AUTO, ON, OFF = "auto", "on", "off"
SWITCHES = (AUTO, ON, OFF)
WEIGHTS = ("per-channel", "per-tensor")


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """Options of `accelsim quantize`."""

    model: str
    out: Path  # a folder, or a file that ends in .pt2
    data: str | None = None  # .npz, .npy or FILE.py:FUNCTION; the model's own data when None
    test: str | None = None  # the same, with labels
    metric: str | None = None  # the model's own, or top1, when None
    calibration: str = AUTO  # or one of observers.KINDS
    percentile: float = PERCENTILE
    weights: str = WEIGHTS[0]
    equalize: str = AUTO
    bias_correction: str = AUTO
    keep_float: tuple[str, ...] = ()
    max_loss: float | None = None
    samples: int = 512  # of the calibration data, at most
    sensitivity: bool = True
    seed: int = 0
    argv: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse options that are out of range."""
        _one_of("--calibration", self.calibration, (AUTO, *KINDS))
        _one_of("--weights", self.weights, WEIGHTS)
        _one_of("--equalize", self.equalize, SWITCHES)
        _one_of("--bias-correction", self.bias_correction, SWITCHES)
        if not 50 < self.percentile <= 100:
            raise InputError(
                f"--percentile {self.percentile:g} is out of range; use more than 50, up to 100"
            )
        if self.samples < 1:
            raise InputError(f"--samples is {self.samples}; use 1 or more")
        if self.max_loss is not None and not (math.isfinite(self.max_loss) and self.max_loss >= 0):
            raise InputError(f"--max-loss is {self.max_loss:g}; use 0 or more")

    @property
    def base(self) -> Path:
        """What all files that are written have in common: FOLDER/model, or FILE without .pt2."""
        return self.out.with_suffix("") if self.out.suffix == ".pt2" else self.out / "model"


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{option} {value!r} is not one of {', '.join(known)}")
