"""`accelsim ops`: the support matrix of operators, and what one of them lacks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from accelsim.cli.console import streams_of
from accelsim.cli.output import write_json_output
from accelsim.errors import InputError

if TYPE_CHECKING:
    from accelsim.ops.matrix import Row


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("ops")(ops)


def ops(
    context: typer.Context,
    name: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Operators; all if none.")
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="What these operators lack; exit code 1 if anything.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
    extend: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A file that registers operators.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Counts of runs; default build/ops/results.json.")
    ] = None,
) -> int:
    """Print which operators there are, where they run, and how much of each was compared."""
    from accelsim.ops import known_operators, operator_of
    from accelsim.ops.loading import load_extension
    from accelsim.ops.matrix import support_matrix, to_json
    from accelsim.ops.missing import missing as lacking
    from accelsim.ops.results import RESULTS, read_results

    if results is not None and not results.is_file():
        raise InputError(f"there is no file {results}: run nox -s ops, which writes it")
    for path in extend or ():
        load_extension(path)
    found = read_results(RESULTS if results is None else results)
    chosen = [operator_of(one) for one in name] if name else list(known_operators().values())
    if missing:
        lacks = {one.name: lacking(one.name, found) for one in chosen}
        if json:
            write_json_output("-", {one: list(what) for one, what in lacks.items()})
        else:
            for one, what in lacks.items():
                for sentence in what or ("nothing is missing",):
                    typer.echo(f"{one}: {sentence.removeprefix(f'{one}: ')}")
        return 1 if any(lacks.values()) else 0
    rows = support_matrix(chosen, found)
    if json:
        write_json_output("-", to_json(rows))
        return 0
    _print(context, rows)
    return 0


def _print(context: typer.Context, rows: tuple[Row, ...]) -> None:
    out = streams_of(context).out
    heads = ("operator", "types", "limits", "runs on", "rounding", "bit-exact with")
    support = _table(heads)
    for row in rows:
        facts = row.operator.facts
        cells = (row.operator.name, facts.types, "; ".join(facts.limits), ", ".join(row.engines))
        _add(support, *cells, ", ".join(facts.roundings), ", ".join(facts.exact))
    out.print(support)
    for row in rows:
        if row.operator.facts.notes:
            out.print(Text(f"{row.operator.name}: {row.operator.facts.notes}"), soft_wrap=True)
    out.print()
    out.print(_compared(rows))


def _compared(rows: tuple[Row, ...]) -> Table:
    from accelsim.ops.matrix import cell_text
    from accelsim.ops.outcome import STAGES
    from accelsim.spec.config import CONFIGS

    table = _table(("elements compared", "", *STAGES), numbers=2)
    for row in rows:
        for config in CONFIGS:
            texts = (cell_text(row, stage, config) for stage in STAGES)
            _add(table, row.operator.name, config, *texts)
    return table


def _table(heads: tuple[str, ...], numbers: int | None = None) -> Table:
    """Columns from `numbers` on are aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, head in enumerate(heads):
        right = numbers is not None and column >= numbers
        table.add_column(head, overflow="fold", justify="right" if right else "left")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(cell) for cell in cells))
