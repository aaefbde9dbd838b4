"""`accelsim advise`: what the NPU cannot run or runs badly, and what replaces it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accelsim.cli.console import Streams, nobody_reads, streams_of
from accelsim.cli.execution import model_code
from accelsim.cli.output import check_json_target, write_json_output
from accelsim.cli.parameters import ConfigOption, JsonOption, Model, SeedOption, TimeLimitOption
from accelsim.cli.stops import stoppable
from accelsim.spec.config import load_config

if TYPE_CHECKING:
    from accelsim.advise import AdviseRecord


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("advise")(advise)


def advise(
    context: typer.Context,
    model: Model,
    config: ConfigOption = "edge8",
    apply: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Replace: NAME or NAME:LAYER; repeatable."),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=0, max=1000, help="Training after a replacement, 0 for none.")
    ] = 6,
    out: Annotated[Path | None, typer.Option(help="Folder for the changed float network.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Calibration samples: .npz, .npy or FILE.py:FUNCTION.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(help="Labelled samples for the accuracy, in the same forms.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="top1, top5, or FILE.py:FUNCTION(outputs, labels).")
    ] = None,
    json: JsonOption = None,
    seed: SeedOption = 0,
    time_limit: TimeLimitOption = None,
) -> int:
    """Name layers that the NPU cannot run or runs badly, and try what replaces them."""
    from accelsim.advise import AdviseOptions, AdviseRecord

    options = AdviseOptions(
        model=model,
        config=load_config(config),
        apply=tuple(apply or ()),
        epochs=epochs,
        out=out,
        data=data,
        test=test,
        metric=metric,
        seed=seed,
    )
    check_json_target(json)
    record = AdviseRecord(options)
    io = streams_of(context)
    _run(record, io, time_limit)
    return _finish(record, io, json)


def _run(record: AdviseRecord, io: Streams, time_limit: float | None) -> None:
    from accelsim.advise import run

    with stoppable(time_limit) as stop:
        try:
            with io.working(), model_code(record.options.model):
                run(record.options, io.progress, record)
        except (Exception, KeyboardInterrupt) as error:
            stop.settle()
            if io.debug:
                io.err.print_exception()
            record.fail(stop.or_else(error))


def _finish(record: AdviseRecord, io: Streams, json: str | None) -> int:
    """Print what was found; returns the exit code."""
    from accelsim.advise import document, text

    try:
        if json is not None:
            write_json_output(json, document(record))
        if json != "-":
            for line in text(record):
                io.out.print(line, markup=False, soft_wrap=True)
            sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads(sys.stdout)
    if record.error:
        prefix = "internal error: " if record.exit_code == 3 else ""
        io.say(f"accelsim: {prefix}{record.error}")
    return record.exit_code
