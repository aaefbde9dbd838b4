"""`accelsim quantize`: a float network becomes int8, and what that costs is measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from accelsim.cli import parameters
from accelsim.cli.analysis import finish, work
from accelsim.cli.console import streams_of
from accelsim.cli.output import check_json_target


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("quantize")(quantize)


def quantize(
    context: typer.Context,
    model: parameters.Model,
    out: Annotated[Path, typer.Option("--out", help="Folder, or a file that ends in .pt2.")],
    data: parameters.Data = None,
    test: parameters.Test = None,
    metric: parameters.Metric = None,
    calibration: Annotated[
        str, typer.Option(help="auto, minmax, percentile, mse or entropy.")
    ] = "auto",
    percentile: Annotated[
        float, typer.Option(help="Of activations that stay inside, with percentile.")
    ] = 99.99,
    weights: Annotated[str, typer.Option(help="per-channel or per-tensor scales.")] = "per-channel",
    equalize: Annotated[
        str, typer.Option(help="Cross-layer equalisation: auto, on or off.")
    ] = "auto",
    bias_correction: Annotated[str, typer.Option(help="auto, on or off.")] = "auto",
    keep_float: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Layer or module that stays on the host; repeatable."),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(help="Leave sensitive layers in float until the metric loses no more."),
    ] = None,
    samples: Annotated[int, typer.Option(help="Calibration samples at most.")] = 512,
    sensitivity: Annotated[bool, typer.Option(help="Measure what each layer costs.")] = True,
    json: parameters.Json = None,
    seed: parameters.Seed = 0,
    time_limit: parameters.TimeLimit = None,
) -> int:
    """Quantize a float network, and measure layer by layer what it costs."""
    from accelsim.calibrate import (
        QuantizeOptions,
        checkpoint,
        document,
        new_record,
        prepare_base,
        run,
        text,
    )

    options = QuantizeOptions(
        model=model,
        out=out,
        data=data,
        test=test,
        metric=metric,
        calibration=calibration,
        percentile=percentile,
        weights=weights,
        equalize=equalize,
        bias_correction=bias_correction,
        keep_float=tuple(keep_float or ()),
        max_loss=max_loss,
        samples=samples,
        sensitivity=sensitivity,
        seed=seed,
        argv=tuple(sys.argv[1:]),
    )
    check_json_target(json)
    prepare_base(options.base, model)
    record = new_record(options)
    io = streams_of(context)
    work(record, model, io, time_limit, lambda: run(options, io.progress, record))
    checkpoint(record)
    code = finish(
        record,
        io,
        json,
        lambda: document(record),
        lambda: text(record) if record.found else (),
    )
    if code and not record.error:
        io.say(f"accelsim: the loss is above --max-loss {options.max_loss:g}")
    return code
