"""`accelsim vectors list|check|export`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from accelsim.artifacts import Backend
from accelsim.errors import InputError
from accelsim.sources import vectors_root
from accelsim.spec.config import Config
from accelsim.vectors.case import Case, case_folders, read_case
from accelsim.vectors.export import FORMS, export
from accelsim.vectors.replay import replay

ROOT = vectors_root()
Root = Annotated[Path, typer.Option("--root", help="Folder of CONFIG/CASE folders.")]
CaseArgument = Annotated[str, typer.Argument(help="CONFIG/CASE, or a folder with a case.json.")]


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(help="Programs with memory before and after.", no_args_is_help=True)
    group.command("list")(list_cases)
    group.command("check")(check)
    group.command("export")(export_case)
    app.add_typer(group, name="vectors")


def list_cases(root: Root = ROOT) -> None:
    """List the cases with what they exercise."""
    for folder in case_folders(root):
        case = read_case(folder)
        typer.echo(f"{folder.parent.name}/{case.name}: {case.operator}, {case.description}")


def check(
    case: Annotated[list[str] | None, typer.Argument(help="Cases; all if none.")] = None,
    backend: Annotated[list[str] | None, typer.Option(help="sim or rtl; repeat.")] = None,
    root: Root = ROOT,
) -> int:
    """Replay cases on backends and compare every byte under their masks."""
    folders = [_folder(name, root) for name in case] if case else case_folders(root)
    failed = 0
    cases = [read_case(folder) for folder in folders]
    for config in dict.fromkeys(one.config for one in cases):
        for name in backend or ["sim"]:
            with _backend(name, config) as run:
                for one in cases:
                    if one.config == config:
                        failed += not _replay(one, run)
    return 1 if failed else 0


def _replay(case: Case, backend: Backend) -> bool:
    outcome = replay(case, backend)
    state = "right" if outcome.passed else f"WRONG: {outcome.first}"
    typer.echo(
        f"{case.config.name}/{case.name} on {outcome.backend}: {outcome.compared} bytes, "
        f"{outcome.cycles} cycles, {state}"
    )
    return outcome.passed


def export_case(
    case: CaseArgument,
    form: Annotated[str, typer.Option("--format", help=", ".join(FORMS))] = "bin",
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")] = Path(),
    root: Root = ROOT,
) -> None:
    """Write a case in another tool's format."""
    typer.echo(str(export(read_case(_folder(case, root)), form, out)))


def _folder(name: str, root: Path) -> Path:
    for folder in (root / name, Path(name)):
        if (folder / "case.json").is_file():
            return folder
    raise InputError(f"no vector {name!r} below {root}; accelsim vectors list shows them")


@contextmanager
def _backend(name: str, config: Config) -> Iterator[Backend]:
    if name == "sim":
        from accelsim.simulate import Simulator

        yield Simulator(config).run
    elif name == "rtl":
        from accelsim.cosim.session import Cosim

        with Cosim(config) as cosim:
            yield cosim.launch
    else:
        raise InputError(f"unknown backend {name!r}: use sim or rtl")
