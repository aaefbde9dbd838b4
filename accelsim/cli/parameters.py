"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="zoo:NAME, a torch.export .pt2, or FILE.py:FUNCTION.")]
ConfigOption = Annotated[
    str, typer.Option("--config", help="edge8, base16, wide32, or a .toml file.")
]
BackendOption = Annotated[
    list[str] | None, typer.Option("--backend", help="sim or rtl; repeat for both (the default).")
]
JsonOption = Annotated[
    str | None, typer.Option("--json", help="Also write the report to FILE, or - for stdout.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", help="Seeds training, choice of images, stalls and self-test.")
]
TimeLimitOption = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds for the whole run (exit code 124).")
]
