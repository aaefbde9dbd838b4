"""`accelsim verify`: the main job."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from accelsim.cli import parameters
from accelsim.cli.console import streams_of
from accelsim.cli.execution import run
from accelsim.cli.output import check_json_target
from accelsim.spec.config import load_config


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("verify")(verify)


def verify(
    context: typer.Context,
    model: parameters.Model = "zoo:digits-resnet",
    config: parameters.Config = "edge8",
    backend: parameters.Backend = None,
    input: parameters.Input = None,
    out: parameters.RunFolder = None,
    json: parameters.Json = None,
    seed: parameters.Seed = 0,
    waive: Annotated[Path | None, typer.Option(help="TOML file of accepted differences.")] = None,
    layer: Annotated[str | None, typer.Option(help="Verify this layer alone.")] = None,
    rtl_images: Annotated[int, typer.Option(min=1, help="Test images on RTL.")] = 100,
    test_images: Annotated[
        int | None, typer.Option(min=1, help="Test images on sim (all of them by default).")
    ] = None,
    metric: parameters.Metric = None,
    rtl_layers: Annotated[
        int | None,
        typer.Option(min=1, help="On RTL, run so many layers alone, not the whole network."),
    ] = None,
    stalls: Annotated[bool, typer.Option(help="Repeat on RTL with random AXI stalls.")] = True,
    self_test: Annotated[bool, typer.Option(help="Plant a bug and see it caught.")] = True,
    waves: Annotated[bool, typer.Option("--waves", help="Waveform of the whole run.")] = False,
    time_limit: parameters.TimeLimit = None,
    jobs: parameters.Jobs = 2,
    dump_ir: parameters.DumpIr = None,
    sim_bug: parameters.SimBug = None,
    rtl_bug: parameters.RtlBug = None,
) -> int:
    """Verify a network layer by layer on simulator and RTL against every golden."""
    from accelsim.verify import VerifyOptions
    from accelsim.verify import folder as run_folder

    hardware = load_config(config)
    options = VerifyOptions(
        model=model,
        config=hardware,
        out=out or run_folder.RUNS,
        backends=tuple(backend or ("sim", "rtl")),
        seed=seed,
        input=input,
        waive=waive,
        layer=layer,
        stalls=stalls,
        test_images=1 << 30 if test_images is None else test_images,
        rtl_images=rtl_images,
        rtl_layers=rtl_layers,
        metric=metric,
        time_limit_seconds=time_limit,
        waves=waves,
        dump_ir=dump_ir,
        self_test=self_test,
        sim_bug=sim_bug,
        rtl_bug=rtl_bug,
        jobs=jobs,
        argv=tuple(sys.argv[1:]),
    )
    check_json_target(json)
    with run_folder.opened(out, model) as folder:
        return run(replace(options, out=folder), streams_of(context), json)
