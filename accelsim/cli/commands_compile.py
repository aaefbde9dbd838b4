"""`accelsim compile` and `accelsim run`: a network as programs and a library, and one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from accelsim.cli import parameters
from accelsim.cli.console import Streams, streams_of
from accelsim.cli.execution import model_code
from accelsim.cli.output import check_json_target, write_json_output
from accelsim.cli.stops import stoppable
from accelsim.errors import InputError
from accelsim.files import whole_file, writing
from accelsim.spec.config import load_config

if TYPE_CHECKING:
    from accelsim.verify.deploy import Deployed


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("compile")(compile)
    app.command("run")(run)


def compile(
    context: typer.Context,
    model: parameters.Model,
    config: parameters.Config = "edge8",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for programs, listings and model.so.")
    ] = Path("build/compiled"),
    dump_ir: parameters.DumpIr = None,
    seed: parameters.Seed = 0,
) -> None:
    """Compile a network to NPU programs and to a library that runs them."""
    from accelsim.verify.deploy import write_compiled

    io = streams_of(context)
    hardware = load_config(config)
    with io.working(), model_code(model):
        files = write_compiled(model, hardware, out, dump_ir, seed, io.progress)
    for path in files:
        io.out.print(str(path), soft_wrap=True, markup=False)


def run(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="model.so of `accelsim compile`, or a model.")],
    backend: Annotated[str, typer.Option("--backend", help="sim or rtl.")] = "sim",
    config: parameters.Config = "edge8",
    input: parameters.Input = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help=".npz for the outputs, by name.")
    ] = None,
    json: Annotated[
        str | None, typer.Option("--json", help="Also write what ran to FILE, or - for stdout.")
    ] = None,
    seed: parameters.Seed = 0,
    time_limit: parameters.TimeLimit = None,
) -> None:
    """Run a network once on a backend and write its outputs."""
    from accelsim.verify.deploy import compiled_library, fresh_library, run_once
    from accelsim.verify.options import BACKENDS

    io = streams_of(context)
    if out is not None and out.suffix != ".npz":
        raise InputError(f"--out {out} must end in .npz")
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}: use {' or '.join(BACKENDS)}")
    if model.endswith(".so") and _given(context, "config"):
        raise InputError(f"--config is not for {model}, which was compiled for a configuration")
    check_json_target(json)
    with stoppable(time_limit) as stop:
        try:
            with io.working(), model_code(model):
                if model.endswith(".so"):
                    deployed = compiled_library(Path(model), input)
                else:
                    hardware = load_config(config)
                    deployed = fresh_library(model, hardware, input, seed, io.progress)
                outputs, cycles = run_once(deployed, backend, seed, io.progress)
        except (Exception, KeyboardInterrupt) as error:
            raise stop.or_else(error) from None
    if out is not None:
        _write_outputs(out, outputs)
    summary = {
        "model": model,
        "backend": backend,
        "cycles": cycles,
        "outputs": {
            name: {"shape": list(value.shape), "dtype": str(value.dtype)}
            for name, value in outputs.items()
        },
        "out": None if out is None else str(out),
    }
    if json is not None:
        write_json_output(json, summary)
    if json != "-":
        _print_outputs(io, deployed, outputs, cycles, backend, out)


def _given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _print_outputs(
    io: Streams,
    deployed: Deployed,
    outputs: dict[str, np.ndarray],
    cycles: dict[str, int],
    backend: str,
    out: Path | None,
) -> None:
    def line(text: str) -> None:
        io.out.print(text, soft_wrap=True, markup=False)

    line(f"input: {deployed.origin}")
    for symbol, count in cycles.items():
        line(f"{symbol}: {count:,} cycles on {backend}")
    for name, value in outputs.items():
        line(f"{name}: {value.dtype} of shape {tuple(value.shape)}")
        if out is None:
            line(np.array2string(value, precision=4, threshold=64, max_line_width=100))
    if out is not None:
        line(f"written: {out}")


def _write_outputs(path: Path, outputs: dict[str, np.ndarray]) -> None:
    with writing(path), whole_file(path) as partial:
        np.savez(partial, **outputs)  # type: ignore[arg-type]
