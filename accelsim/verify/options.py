"""What a user asked of a verification run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from accelsim.errors import InputError
from accelsim.spec.config import Config

BACKENDS = ("sim", "rtl")
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options of `accelsim verify`. Counts of images are upper bounds."""

    model: str
    config: Config
    out: Path
    backends: tuple[str, ...] = BACKENDS
    seed: int = 0
    input: Path | None = None
    waive: Path | None = None
    layer: str | None = None  # verify this layer alone; RTL does not run the whole network then
    stalls: bool = True  # on RTL, repeat the image with random AXI stalls
    test_images: int = 1 << 30  # of the test split, on the simulator
    metric: str | None = None  # "top1", "top5" or FILE.py:FUNCTION; by default the model's own
    rtl_images: int = 100  # of the test split, class-balanced, on RTL
    rtl_layers: int | None = None  # on RTL, only so many layers, each alone; not the whole network
    time_limit_seconds: float | None = None
    waves: bool = False
    dump_ir: Path | None = None
    self_test: bool = True
    sim_bug: str | None = None  # a planted bug of the simulator, for tests of verify itself
    rtl_bug: int | None = None  # a planted bug of the RTL, for tests of verify itself
    jobs: int = 2
    argv: tuple[str, ...] = ()
    source: str | None = None  # where the model lies, if not where `model` says
    stored: Path | None = None  # a replay's own quantized model, for want of the original
    expected_program: str | None = None  # SHA-256 of the programs of the run that is repeated

    @property
    def rtl_runs_network(self) -> bool:
        """Whether RTL runs the whole network, and not single layers only."""
        return "rtl" in self.backends and self.layer is None and self.rtl_layers is None

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if not self.backends:
            raise InputError("no backend was chosen; use --backend sim, --backend rtl, or both")
        for backend in self.backends:
            if backend not in BACKENDS:
                raise InputError(f"unknown backend {backend!r}: use {' or '.join(BACKENDS)}")
        if len(set(self.backends)) != len(self.backends):
            raise InputError("a backend was given twice")
        if not 0 <= self.seed < 1 << 32:
            raise InputError(f"seed {self.seed} is out of range; use 0 to {(1 << 32) - 1}")
        if self.rtl_layers is not None and (self.rtl_layers < 1 or "rtl" not in self.backends):
            raise InputError("--rtl-layers takes a number from 1 on, and needs --backend rtl")
        if self.waves and "rtl" not in self.backends:
            raise InputError("--waves needs the RTL; add --backend rtl")
        if self.time_limit_seconds is not None and self.time_limit_seconds <= 0:
            raise InputError(f"time limit is {self.time_limit_seconds} s, use more than 0")
