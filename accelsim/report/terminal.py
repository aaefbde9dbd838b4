"""The report on a terminal: a row a layer, what was exercised, and one line with the verdict."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from accelsim.report import summary
from accelsim.report.summary import BACKENDS, GOLDENS, Failure

STYLES = {"failing": "bold red", "waived": "yellow", "reported": "dim", "absent": "dim"}
VERDICTS = {"passed": "bold green", "incomplete": "bold yellow"}
UNLIMITED = 10_000
SHOWN = 12  # failures in full; the rest are counted unless all are asked for


def print_report(report: dict[str, Any], console: Console, detail: bool = False) -> None:
    """Print a report document; `detail` shows every failure in full."""
    if report["layers"]:
        table = _table(report)
        room = console.options.update(max_width=UNLIMITED)
        wide = Measurement.get(console, room, table).maximum <= console.width
        console.print(table if wide else _narrow_table(report))
        _line(console, "", summary.legend(report), "dim")
        _line(console, "", summary.TVM, "dim")
    _print_failures(report, console, detail)
    _print_facts(report, console)
    console.print(
        Text(summary.verdict(report), style=VERDICTS.get(report["status"], "bold red")),
        soft_wrap=not console.is_terminal,
    )


def _new_table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, number in columns:
        table.add_column(
            name,
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number,
        )
    return table


def _table(report: dict[str, Any]) -> Table:
    names = {golden: summary.golden_name(report, golden) for golden in GOLDENS}
    names["integer"] = "int"
    goldens = [(f"{backend} {names[golden]}", True) for backend in BACKENDS for golden in GOLDENS]
    table = _new_table(
        *(("layer", False), ("operator", False), ("on", False), ("tiles", True)),
        *(("elements", True), *goldens),
        *(("cycles sim", True), ("rtl", True), ("use", True)),
    )
    for layer in report["layers"]:
        table.add_row(
            _name(layer),
            layer["op"],
            Text(layer["placement"], style="" if layer["placement"] == "npu" else "yellow"),
            f"{layer['tiles']:,}",
            f"{layer['elements']:,}",
            *(_cell(layer, backend, golden) for backend in BACKENDS for golden in GOLDENS),
            *(_count(layer["cycles"][backend]) for backend in BACKENDS),
            _use(layer),
        )
    return table


def _narrow_table(report: dict[str, Any]) -> Table:
    """Without operators, sizes and TVM."""
    own = summary.golden_name(report, "framework")
    names = ("sim int", own, "rtl int", own)
    table = _new_table(
        ("layer", False), *((name, True) for name in names), ("cycles", True), ("use", True)
    )
    for layer in report["layers"]:
        table.add_row(
            _name(layer),
            *(_cell(layer, backend, golden) for backend in BACKENDS for golden in GOLDENS[:2]),
            _count(layer["cycles"]["rtl"] or layer["cycles"]["sim"]),
            _use(layer),
        )
    return table


def _name(layer: dict[str, Any]) -> Text:
    return Text(layer["name"], style=STYLES.get(summary.state_of(layer), ""))


def _cell(layer: dict[str, Any], backend: str, golden: str) -> Text:
    cell = summary.cell(layer, backend, golden)
    return Text(cell.text, style=STYLES.get(cell.state, ""))


def _count(value: int | None) -> Text:
    return Text("-", style="dim") if value is None else Text(f"{value:,}")


def _use(layer: dict[str, Any]) -> Text:
    share = layer["utilization"]["rtl"] or layer["utilization"]["sim"]
    return Text("-", style="dim") if share is None else Text(f"{100 * share:.1f} %")


def _print_failures(report: dict[str, Any], console: Console, detail: bool) -> None:
    found = summary.failures(report)
    own = [failure for failure in found if not failure.inherited]
    # A network that is wrong only as a whole has no origin to point at, so it is shown in full.
    chosen = found if detail or not own else own
    for failure in chosen if detail else chosen[:SHOWN]:
        _print_failure(failure, console)
    if not detail and len(chosen) > SHOWN:
        rest = len(chosen) - SHOWN
        _line(console, "", f"and {rest} more; -v prints all of them, report.html shows them", "red")
    if chosen is own and (sentence := summary.inherited(found)):
        _line(console, "", sentence, "red")


def _print_failure(failure: Failure, console: Console) -> None:
    style = "red" if failure.waived is None else "yellow"
    text = Text(failure.title, style=f"bold {style}")
    for detail in failure.details:
        text.append(f"\n    {detail}", style=style)
    if failure.instruction:
        text.append(f"\n    {failure.instruction}")
    if failure.waived is not None:
        text.append(f"\n    waived: {failure.waived}")
    console.print(text, soft_wrap=not console.is_terminal)


def _line(console: Console, title: str, text: str, style: str = "") -> None:
    line = Text()
    if title:
        line.append(f"{title}: ", style="bold")
    console.print(line.append(text, style=style), soft_wrap=not console.is_terminal)


def _print_facts(report: dict[str, Any], console: Console) -> None:
    for note in report["notes"]:
        _line(console, "note", note, "yellow")
    groups = summary.exercised(report)
    if groups:
        _line(console, "exercised", "; ".join(f"{title}: {text}" for title, text in groups))
    shares = [
        f"{name} {summary.number(report, share)} of {samples}"
        for name, share, samples in summary.accuracy(report)
    ]
    if shares:
        _line(console, summary.accuracy_title(report), ", ".join(shares))
    for name, text in summary.agreement(report):
        _line(console, name, text)
    for check in report["checks"]:
        counted = f"{check['mismatches']:,} of {check['elements']:,} elements differ"
        bad = check["mismatches"] and check.get("gate", True)
        _line(console, "check", f"{check['name']}: {counted}", "red" if bad else "")
    if report["self_test"]:
        test = report["self_test"]
        caught = test["caught"] or "nothing"
        style = "" if test["caught"] else "red"
        _line(console, "self-test", f"planted: {test['planted']}; caught: {caught}", style)
    totals = report["totals"]
    if totals["macs"]:
        spent = ", ".join(f"{v:,} on {k}" for k, v in totals["cycles"].items() if v is not None)
        text = f"{totals['macs']:,} MACs; cycles {spent or '-'}; {summary.seconds(report)}"
        _line(console, "network", text)
    if report["not_run"]:
        _line(console, "not run", "; ".join(report["not_run"]))
