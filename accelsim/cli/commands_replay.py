"""`accelsim replay`: repeat a run from its folder, wherever the folder is now."""

from __future__ import annotations

import json as json_module
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accelsim.cli import parameters
from accelsim.cli.console import Streams, streams_of
from accelsim.cli.execution import run
from accelsim.cli.output import check_json_target
from accelsim.errors import AccelsimError, InputError
from accelsim.spec.config import Config

if TYPE_CHECKING:
    from accelsim.verify import VerifyOptions

# Entries of run.json that are used as they are, and what each may be.
OPTIONAL_TEXT = (str, type(None))
KINDS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "config": (dict,),
    "cwd": (str,),
    "versions": (dict,),
    "source": OPTIONAL_TEXT,
    "layer": OPTIONAL_TEXT,
    "stored": OPTIONAL_TEXT,
}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("replay")(replay)


def replay(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    layer: Annotated[str | None, typer.Option(help="Repeat this layer alone.")] = None,
    backend: parameters.Backend = None,
    waves: Annotated[bool, typer.Option("--waves", help="Waveform of the run.")] = False,
    out: Annotated[Path | None, typer.Option(help="New run folder.")] = None,
    json: parameters.Json = None,
    time_limit: parameters.TimeLimit = None,
) -> int:
    """Repeat a run with its own model, input, seed and options; say first if sources differ."""
    from accelsim.verify import folder as run_folder

    io = streams_of(context)
    stored = read_run(folder)
    options = stored_options(folder, stored)
    if out is not None and out.resolve() == folder.resolve():
        raise InputError(f"{out} is the run to repeat; choose another --out")
    say_differences(stored, options.config, io)
    options = replace(
        options,
        layer=layer if layer is not None else options.layer,
        backends=tuple(backend) if backend else options.backends,
        waves=waves or options.waves,
        time_limit_seconds=time_limit,
        expected_program=program_of(folder),
    )
    check_json_target(json)
    with run_folder.opened(out, f"replay-{options.model}") as target:
        dump_ir = target / "ir" if options.dump_ir else None
        options = replace(options, out=target, dump_ir=dump_ir)
        return run(_with_model(folder, options, stored, io), io, json)


def read_run(folder: Path) -> dict[str, Any]:
    """run.json of a run folder. Raises InputError naming the folder."""
    path = folder / "run.json"
    try:
        content = json_module.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} is no run folder: it has no run.json") from None
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict) or "model" not in content or "config" not in content:
        raise InputError(f"{path} is not a run's description")
    for name, kinds in KINDS.items():
        if name in content and not isinstance(content[name], kinds):
            raise InputError(f"{path} is not a run's description: {name} is {content[name]!r}")
    return content


def program_of(folder: Path) -> str | None:
    """SHA-256 of the programs that a run compiled, None where it did not come so far."""
    try:
        report = json_module.loads((folder / "report.json").read_text(encoding="utf-8"))
        return str(report["program_sha256"]) or None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored_options(folder: Path, stored: dict[str, Any]) -> VerifyOptions:
    """The options of a run, its files taken from its folder.

    Raises InputError where they are not those of this version.
    """
    from dataclasses import fields

    from accelsim.verify import VerifyOptions

    names = {field.name for field in fields(VerifyOptions)}
    names -= {"config", "stored", "expected_program"}
    path = folder / "run.json"
    if missing := sorted(names - stored.keys()):
        raise InputError(f"{path} is not a run of this version: it lacks {', '.join(missing)}")
    config = _config(path, stored["config"])
    inputs, waivers = folder / "inputs.npz", folder / "waivers.toml"
    try:
        values = {name: stored[name] for name in names}
        values |= {
            "config": config,
            "out": folder,
            "backends": tuple(values["backends"]),
            "argv": tuple(values["argv"]),
            "input": inputs if inputs.is_file() else _path(values["input"]),
            "waive": waivers if waivers.is_file() else _path(values["waive"]),
            "dump_ir": _path(values["dump_ir"]),
        }
        return VerifyOptions(**values)
    except (TypeError, AccelsimError) as error:
        raise InputError(f"{path} is not a run of this version: {error}") from None


def _config(path: Path, fields: dict[str, Any]) -> Config:
    try:
        return Config(**fields)
    except (TypeError, AccelsimError) as error:
        raise InputError(f"{path}: its configuration is not one of this version: {error}") from None


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def say_differences(stored: dict[str, Any], config: Config, io: Streams) -> None:
    """Say on stderr what is not as it was when the run was made."""
    from accelsim.verify import folder as run_folder

    now = {
        "rtl_sha256": ("the RTL differs", run_folder.rtl_hash(config)),
        "sources_sha256": ("accelsim's sources differ", run_folder.source_hash(config)),
    }
    for key, (sentence, value) in now.items():
        if stored.get(key) != value:
            io.say(f"note: {sentence} from those of the run")
    versions = run_folder.versions()
    for name, before in (stored.get("versions") or {}).items():
        if versions.get(name) != before:
            io.say(f"note: {name} was {before} and is {versions.get(name, 'absent')}")


def _with_model(
    folder: Path, options: VerifyOptions, stored: dict[str, Any], io: Streams
) -> VerifyOptions:
    """Where the model is now: as given, relative to where the run was started, or in the folder."""
    name = options.source or options.model
    if name.startswith("zoo:"):
        return options
    file, colon, function = name.rpartition(":") if ".py:" in name else (name, "", "")
    for place in (Path(stored.get("cwd", ".")) / file, Path(file)):
        if place.is_file():
            return replace(options, source=f"{place}{colon}{function}")
    kinds = (folder / f"model.{kind}" for kind in ("onnx", "tflite", "pt2"))
    kept = next((path for path in kinds if path.is_file()), None)
    if options.stored is None and kept is None:
        raise InputError(f"the model {name} is gone, and {folder} holds no copy to repeat it")
    io.say(f"note: {name} is gone; the quantized model of the run folder is used")
    # Programs of a .pt2 are the same but for the names of fused activations, which it loses.
    same = kept is not None and kept.suffix != ".pt2"
    expected = options.expected_program if same else None
    return replace(options, stored=kept or options.stored, expected_program=expected)
