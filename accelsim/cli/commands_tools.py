"""`accelsim zoo`, `accelsim doctor` and `accelsim cache`: what is there, and what it needs."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from accelsim.cli.console import streams_of
from accelsim.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("zoo")(zoo)
    app.command("doctor")(doctor)
    cache = typer.Typer(help="Built simulations and trained models.", no_args_is_help=True)
    cache.command("info")(cache_info)
    cache.command("clear")(cache_clear)
    app.add_typer(cache, name="cache")


def zoo() -> None:
    """List the models of the zoo."""
    from accelsim.zoo import zoo_names

    for name in zoo_names():
        typer.echo(f"zoo:{name}")


def doctor(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> int:
    """Check what accelsim needs on this machine; exit code 2 if something required is missing."""
    from accelsim.doctor import check_all, failures, this_machine

    checks = check_all(this_machine())
    code = 2 if failures(checks) else 0
    if json:
        typer.echo(json_module.dumps([asdict(check) for check in checks], indent=1))
        return code
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        state = "ok" if check.ok else "MISSING" if check.required else "optional"
        style = "green" if check.ok else "bold red" if check.required else "yellow"
        text = check.found if check.ok else f"{check.problem}; {check.remedy}"
        table.add_row(Text(state, style=style), check.name, Text(text))
    out = streams_of(context).out
    out.print(table)
    out.print("everything required is there" if not code else "something required is missing")
    return code


def _zoo_files() -> list[Path]:
    from accelsim.zoo import cache_dir

    return sorted(path for path in (cache_dir() / "zoo").glob("*") if path.is_file())


def cache_info(context: typer.Context) -> None:
    """List built simulations, what else the cache holds, and trained models with their sizes."""
    from accelsim.cosim import build

    out = streams_of(context).out
    total = 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("what", "size", "built"):
        table.add_column(name, justify="right" if name == "size" else "left", overflow="fold")
    for entry in build.cache_info():
        table.add_row(entry.name, _size(entry.size_bytes), entry.built)
        total += entry.size_bytes
    for name, size in build.cache_sizes().items():
        table.add_row(f"{name}/", _size(size), "")
        total += size
    for path in _zoo_files():
        size = _bytes(path)
        table.add_row(path.name, _size(size), "")
        total += size
    out.print(table)
    out.print(f"{_size(total)} in {build.cache_root()} and the zoo's cache")


def cache_clear(context: typer.Context) -> None:
    """Delete built simulations, their logs and trained models; run folders of verify stay."""
    from accelsim.cosim import build

    freed = build.cache_clear()
    try:
        for path in _zoo_files():
            freed += _bytes(path)
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot delete {error.filename}: {error.strerror}") from None
    streams_of(context).out.print(f"{_size(freed)} freed")


def _bytes(path: Path) -> int:
    """Size of a file; 0 where another process deleted it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"
