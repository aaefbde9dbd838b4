"""`accelsim advise`: what the NPU cannot run or runs badly, and what replaces it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accelsim.cli import parameters
from accelsim.cli.analysis import finish, work
from accelsim.cli.console import streams_of
from accelsim.cli.output import check_json_target
from accelsim.spec.config import load_config


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("advise")(advise)


def advise(
    context: typer.Context,
    model: parameters.Model,
    config: parameters.Config = "edge8",
    apply: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Replace: NAME or NAME:LAYER; repeatable."),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=0, max=1000, help="Training after a replacement, 0 for none.")
    ] = 6,
    out: Annotated[Path | None, typer.Option(help="Folder for the changed float network.")] = None,
    data: parameters.Data = None,
    test: parameters.Test = None,
    metric: parameters.Metric = None,
    json: parameters.Json = None,
    seed: parameters.Seed = 0,
    time_limit: parameters.TimeLimit = None,
) -> int:
    """Name layers that the NPU cannot run or runs badly, and try what replaces them."""
    from accelsim.advise import AdviseOptions, AdviseRecord, document, run, text

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
    work(record, model, io, time_limit, lambda: run(options, io.progress, record))
    return finish(record, io, json, lambda: document(record), lambda: text(record))
