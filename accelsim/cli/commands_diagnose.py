"""`accelsim diagnose`: a network that is right in float and wrong on the NPU; where?"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from accelsim.cli import parameters
from accelsim.cli.analysis import finish, work
from accelsim.cli.console import streams_of
from accelsim.cli.execution import request_of
from accelsim.cli.output import check_json_target
from accelsim.spec.config import load_config


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("diagnose")(diagnose)


def diagnose(
    context: typer.Context,
    model: parameters.Model,
    config: parameters.Config = "edge8",
    backend: parameters.Backend = None,
    input: parameters.Input = None,
    label: Annotated[int | None, typer.Option(help="The class that is right.")] = None,
    sample: Annotated[
        int, typer.Option(help="Which sample of the file, from 0; with a batch, which batch.")
    ] = 0,
    out: parameters.RunFolder = None,
    json: parameters.Json = None,
    seed: parameters.Seed = 0,
    time_limit: parameters.TimeLimit = None,
    jobs: parameters.Jobs = 2,
    sim_bug: parameters.SimBug = None,
    rtl_bug: parameters.RtlBug = None,
) -> int:
    """Find where a network goes wrong between float and RTL: each rung, each layer's noise."""
    from accelsim.diagnose import DiagnoseOptions, DiagnoseRecord, document, text
    from accelsim.diagnose import diagnose as walk
    from accelsim.verify import VerifyOptions
    from accelsim.verify import folder as run_folder

    check_json_target(json)
    given = VerifyOptions(
        model=model,
        config=load_config(config),
        out=out or run_folder.RUNS,
        backends=tuple(backend or ("sim", "rtl")),
        seed=seed,
        input=input,
        stalls=False,
        self_test=False,
        test_images=1,
        rtl_images=1,
        time_limit_seconds=time_limit,
        sim_bug=sim_bug,
        rtl_bug=rtl_bug,
        jobs=jobs,
        argv=tuple(sys.argv[1:]),
    )
    options = DiagnoseOptions(given, label, sample)
    io = streams_of(context)
    with run_folder.opened(out, model) as folder:
        options = replace(options, verify=replace(given, out=folder))
        record = DiagnoseRecord(options)
        run_folder.write_run(folder, given.config, request_of(options.verify))
        work(record, model, io, time_limit, lambda: walk(options, io.progress, record))
    return finish(record, io, json, lambda: document(record), lambda: text(record))
