"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from accelsim.errors import InputError

LIMIT_MAX_SECONDS = 1e8  # three years; a timer of the system takes no more than 64 bits


def _limit(value: float | None) -> float | None:
    """A time limit that a timer can be set to. Raises InputError for anything else."""
    if value is not None and (math.isnan(value) or value <= 0):
        raise InputError(f"time limit is {value:g} s, use more than 0")
    if value is not None and value > LIMIT_MAX_SECONDS:
        raise InputError(f"time limit is {value:g} s, use at most {LIMIT_MAX_SECONDS:.0f}")
    return value


Model = Annotated[
    str, typer.Argument(help="zoo:NAME, a .pt2, .onnx or .tflite file, or FILE.py:FUNCTION.")
]
Config = Annotated[str, typer.Option("--config", help="edge8, base16, wide32, or a .toml file.")]
Backend = Annotated[
    list[str] | None, typer.Option("--backend", help="sim or rtl; repeat for both (the default).")
]
Data = Annotated[
    str | None,
    typer.Option("--data", help="Calibration samples: .npz, .npy or FILE.py:FUNCTION."),
]
Test = Annotated[
    str | None,
    typer.Option("--test", help="Labelled samples for the accuracy, in the same forms."),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Accuracy by top1, top5 or FILE.py:FUNCTION(outputs, labels); else the model's own.",
    ),
]
Input = Annotated[Path | None, typer.Option("--input", help=".npz keyed by input name, or .npy.")]
RunFolder = Annotated[
    Path | None, typer.Option("--out", help="Run folder (default build/runs/TIME-MODEL).")
]
DumpIr = Annotated[
    Path | None, typer.Option("--dump-ir", help="Folder for the module after each stage.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, max=64, help="Processes that build RTL.")]
SimBug = Annotated[str | None, typer.Option("--sim-bug", hidden=True)]
RtlBug = Annotated[int | None, typer.Option("--rtl-bug", hidden=True)]
Json = Annotated[
    str | None, typer.Option("--json", help="Also write the report to FILE, or - for stdout.")
]
Seed = Annotated[
    int, typer.Option("--seed", help="Seeds training, choice of images, stalls and self-test.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit", callback=_limit, help="Seconds for the whole run (exit code 124)."
    ),
]
