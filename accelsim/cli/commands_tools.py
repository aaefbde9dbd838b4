"""`accelsim zoo`: what accelsim brings along."""

from __future__ import annotations

import typer

from accelsim.zoo import zoo_names


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("zoo")(zoo)


def zoo() -> None:
    """List the models of the zoo."""
    for name in zoo_names():
        typer.echo(f"zoo:{name}")
