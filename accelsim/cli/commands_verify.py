"""`accelsim verify` and `accelsim replay`."""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accelsim.cli.console import Streams
from accelsim.cli.output import write_json_output
from accelsim.errors import AccelsimError, InputError
from accelsim.report import document, print_report
from accelsim.report.html import write_html
from accelsim.spec.config import Config, load_config

if TYPE_CHECKING:
    from accelsim.verify import RunRecord, VerifyOptions

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


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("verify")(verify)
    app.command("replay")(replay)


def verify(
    context: typer.Context,
    model: Model,
    config: ConfigOption = "edge8",
    backend: BackendOption = None,
    input: Annotated[
        Path | None, typer.Option("--input", help=".npz keyed by input name, or .npy.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder (default build/runs/TIME-MODEL).")
    ] = None,
    json: JsonOption = None,
    seed: Annotated[int, typer.Option(help="Seeds training, images and stalls.")] = 0,
    waive: Annotated[Path | None, typer.Option(help="TOML file of accepted differences.")] = None,
    layer: Annotated[str | None, typer.Option(help="Verify this layer alone.")] = None,
    rtl_images: Annotated[int, typer.Option(min=1, help="Test images on RTL.")] = 100,
    test_images: Annotated[int, typer.Option(min=1, help="Test images on sim.")] = 1 << 30,
    stalls: Annotated[bool, typer.Option(help="Repeat on RTL with random AXI stalls.")] = True,
    waves: Annotated[bool, typer.Option("--waves", help="Waveform of the whole run.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the whole run.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes that build RTL.")] = 2,
    dump_ir: Annotated[
        Path | None, typer.Option(help="Folder for the module after each stage.")
    ] = None,
) -> int:
    """Verify a network layer by layer on simulator and RTL against every golden."""
    from accelsim.verify import VerifyOptions
    from accelsim.verify import folder as run_folder

    hardware = load_config(config)
    folder = out or run_folder.default_folder(model, datetime.now())
    options = VerifyOptions(
        model=model,
        config=hardware,
        out=run_folder.prepare(folder),
        backends=tuple(backend or ("sim", "rtl")),
        seed=seed,
        input=input,
        waive=waive,
        layer=layer,
        stalls=stalls,
        test_images=test_images,
        rtl_images=rtl_images,
        time_limit_seconds=time_limit,
        waves=waves,
        dump_ir=dump_ir,
        jobs=jobs,
        argv=tuple(sys.argv[1:]),
    )
    return run(options, context.obj, json)


def run(options: VerifyOptions, io: Streams, json: str | None) -> int:
    """Run a verification, write its folder and print its report; returns the exit code."""
    from accelsim.verify import fail, folder, new_record
    from accelsim.verify import verify as run_verification

    folder.write_run(options.out, options.config, _request(options))
    log = _log(options.out / "log.txt")
    record = new_record(options)

    def progress(message: str) -> None:
        log.info(message)
        io.progress(message)

    try:
        run_verification(options, progress, record)
    except (AccelsimError, KeyboardInterrupt) as error:
        fail(record, error)
        log.exception("stopped")
        if io.debug:
            io.err.print_exception()
    except Exception as error:
        fail(record, error)
        log.exception("internal error")
        if io.debug:
            io.err.print_exception()
    _finish(record, options, io, json)
    return record.exit_code


def _finish(record: RunRecord, options: VerifyOptions, io: Streams, json: str | None) -> None:
    from accelsim.verify import folder

    report = document(record)
    folder.write_json(options.out / "report.json", report)
    write_html(options.out / "report.html", report, options.config.lanes)
    if json is not None:
        write_json_output(json, report)
    if json != "-":
        print_report(report, options.config.lanes, io.out)
    if record.exit_code == 3:
        io.err.print(f"accelsim: internal error: {record.error}; see {options.out / 'log.txt'}")
    elif record.error:
        io.err.print(f"accelsim: {record.error}", highlight=False)
    if record.exit_code:
        io.err.print(record.replay, highlight=False)


def _request(options: VerifyOptions) -> dict[str, Any]:
    """The options as JSON; paths become absolute, so that a replay works from elsewhere."""
    request: dict[str, Any] = {}
    for name, value in asdict(replace(options, config=options.config)).items():
        if name == "config":
            continue
        request[name] = str(value.resolve()) if isinstance(value, Path) else value
    return request


def _log(path: Path) -> logging.Logger:
    logger = logging.getLogger(f"accelsim.{path}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.handlers = [handler]
    return logger


def replay(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    layer: Annotated[str | None, typer.Option(help="Repeat this layer alone.")] = None,
    backend: BackendOption = None,
    waves: Annotated[bool, typer.Option("--waves", help="Waveform of the run.")] = False,
    out: Annotated[Path | None, typer.Option(help="New run folder.")] = None,
    json: JsonOption = None,
) -> int:
    """Repeat a run with its own input, seed and options; say first if sources differ."""
    from accelsim.verify import VerifyOptions
    from accelsim.verify import folder as run_folder

    io: Streams = context.obj
    stored = read_run(folder)
    config = Config(**stored.pop("config"))
    for key, now in (
        ("sources_sha256", run_folder.source_hash(config)),
        ("versions", run_folder.versions()),
    ):
        if stored.pop(key, None) != now:
            io.err.print(f"note: {key.split('_')[0]} differ from those of the run", highlight=False)
    stored.pop("rtl_sha256", None)
    inputs = folder / "inputs.npz"
    try:
        paths = {k: Path(stored[k]) if stored[k] else None for k in ("input", "waive", "dump_ir")}
        options = VerifyOptions(
            **{
                **stored,
                **paths,
                "config": config,
                "out": folder,
                "backends": tuple(stored["backends"]),
                "argv": tuple(stored["argv"]),
            }
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / 'run.json'} is not a run of this version: {error}") from None
    target = out or run_folder.default_folder(f"replay-{options.model}", datetime.now())
    options = replace(
        options,
        out=run_folder.prepare(target),
        input=inputs if inputs.is_file() else options.input,
        layer=layer if layer is not None else options.layer,
        backends=tuple(backend) if backend else options.backends,
        waves=waves or options.waves,
    )
    return run(options, io, json)


def read_run(folder: Path) -> dict[str, Any]:
    """run.json of a run folder. Raises InputError naming the folder."""
    import json as json_module

    path = folder / "run.json"
    try:
        content = json_module.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} is no run folder: it has no run.json") from None
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict) or "model" not in content or "config" not in content:
        raise InputError(f"{path} is not a run's description")
    return content
