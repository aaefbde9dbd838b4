"""`accelsim quantize`: a float network becomes int8, and what that costs is measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accelsim.cli.console import Streams, nobody_reads, streams_of
from accelsim.cli.execution import model_code
from accelsim.cli.output import check_json_target, write_json_output
from accelsim.cli.parameters import JsonOption, Model, SeedOption, TimeLimitOption
from accelsim.cli.stops import stoppable

if TYPE_CHECKING:
    from accelsim.calibrate import QuantizeRecord


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("quantize")(quantize)


def quantize(
    context: typer.Context,
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="Folder, or a file that ends in .pt2.")],
    data: Annotated[
        str | None,
        typer.Option(help="Calibration samples: .npz, .npy or FILE.py:FUNCTION."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(help="Labelled samples for the accuracy, in the same forms."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="top1, top5, or FILE.py:FUNCTION(outputs, labels); the model's own."),
    ] = None,
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
    json: JsonOption = None,
    seed: SeedOption = 0,
    time_limit: TimeLimitOption = None,
) -> int:
    """Quantize a float network, and measure layer by layer what it costs."""
    from accelsim.calibrate import QuantizeOptions, new_record, prepare_base

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
    _run(record, streams_of(context), time_limit)
    return _finish(record, streams_of(context), json)


def _run(record: QuantizeRecord, io: Streams, time_limit: float | None) -> None:
    from accelsim.calibrate import checkpoint, run

    with stoppable(time_limit) as stop:
        try:
            with io.working(), model_code(record.options.model):
                run(record.options, io.progress, record)
        except (Exception, KeyboardInterrupt) as error:
            stop.settle()
            if io.debug:
                io.err.print_exception()
            record.fail(stop.or_else(error))
        checkpoint(record)


def _finish(record: QuantizeRecord, io: Streams, json: str | None) -> int:
    """Print what was found; returns the exit code."""
    from accelsim.calibrate import document, text

    try:
        if json is not None:
            write_json_output(json, document(record))
        if json != "-" and (record.trials or not record.error):
            for line in text(record):
                io.out.print(line, markup=False, soft_wrap=True)
            sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads(sys.stdout)
    if record.error:
        prefix = "internal error: " if record.exit_code == 3 else ""
        io.say(f"accelsim: {prefix}{record.error}")
    elif record.exit_code:
        io.say(f"accelsim: the loss is above --max-loss {record.options.max_loss:g}")
    return record.exit_code
