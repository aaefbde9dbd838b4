"""The report on a terminal: a row a layer, what was exercised, and one line with the verdict."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

COLUMNS = (
    ("layer", "left"),
    ("operator", "left"),
    ("on", "left"),
    ("tiles", "right"),
    ("elements", "right"),
    ("sim: int torch tvm", "left"),
    ("rtl: int torch tvm", "left"),
    ("cycles sim", "right"),
    ("cycles rtl", "right"),
    ("use %", "right"),
)


def print_report(report: dict[str, Any], console: Console, detail: bool = False) -> None:
    lanes = 8
    """Print a report.json document. Mismatches: isolated+accumulated against each golden."""
    console.print(_layer_table(report, lanes))
    _print_failures(report, console)
    _print_facts(report, console)
    console.print(verdict(report), style=_style(report["status"]), highlight=False)


def _style(status: str) -> str:
    return "bold green" if status == "passed" else "bold red"


def _layer_table(report: dict[str, Any], lanes: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in COLUMNS:
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for layer in report["layers"]:
        cycles = layer["cycles"]
        table.add_row(
            layer["name"],
            layer["op"],
            layer["placement"] + (" waived" if layer["waived"] else ""),
            str(layer["tiles"]),
            f"{layer['elements']:,}",
            _mismatches(layer, "sim"),
            _mismatches(layer, "rtl"),
            _count(cycles["sim"]),
            _count(cycles["rtl"]),
            _utilization(layer, lanes),
        )
    return table


def _mismatches(layer: dict[str, Any], backend: str) -> str:
    """`isolated+accumulated` mismatches for each golden; `-` where nothing was compared."""
    cells = []
    for golden in ("integer", "torch", "tvm"):
        counts = [
            "missing" if c["status"] == "missing" else str(c["mismatches"])
            for mode in ("isolated", "accumulated")
            for c in layer["compare"]
            if (c["actual"], c["golden"], c["mode"]) == (backend, golden, mode)
        ]
        cells.append("+".join(counts) or "-")
    return "  ".join(cells)


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _utilization(layer: dict[str, Any], lanes: int) -> str:
    cycles = layer["cycles"]["rtl"] or layer["cycles"]["sim"]
    if not cycles or not layer["macs"]:
        return "-"
    return f"{100 * layer['macs'] / (lanes * lanes * cycles):.1f}"


def _print_failures(report: dict[str, Any], console: Console) -> None:
    for layer in report["layers"]:
        for c in layer["compare"]:
            if c["gate"] and c["status"] in ("different", "missing"):
                console.print(_failure(layer["name"], c), style="red", highlight=False)
        if layer["placement"] == "host" and not layer["waived"]:
            console.print(
                f"layer {layer['name']} ran on the host: {layer['reason']}",
                style="red",
                highlight=False,
            )
    for problem in report["problems"]:
        console.print(problem, style="red", highlight=False)


def _failure(name: str, c: dict[str, Any]) -> str:
    head = f"layer {name}, {c['actual']} against {c['golden']} ({c['mode']})"
    if c["status"] == "missing":
        return f"{head}: {c['cause']}"
    text = f"{head}: {c['mismatches']:,} of {c['elements']:,} differ, at most {c['max_abs_diff']}"
    first = c["first"]
    if first is None:
        return text
    place = ", ".join(str(i) for i in first["index"])
    text += f"; first at [{place}]: expected {first['expected']}, got {first['actual']}"
    if first["instruction"] >= 0:
        text += f", tile {first['tile']}, instruction {first['instruction']}: {first['text']}"
    return text


def _print_facts(report: dict[str, Any], console: Console) -> None:
    def line(title: str, text: str) -> None:
        console.print(f"[bold]{title}:[/bold] {text}", highlight=False)

    if report["exercised"]:
        line("exercised", ", ".join(f"{k} {v:,}" for k, v in report["exercised"].items()))
    accuracy = report["accuracy"]
    shares = [
        f"{name} {100 * accuracy[name]:.2f} % of {samples}"
        for name, samples in accuracy["samples"].items()
    ]
    if shares:
        line("accuracy", ", ".join(shares))
    for check in report["checks"]:
        line("check", f"{check['name']}: {check['mismatches']} of {check['elements']:,} differ")
    if report["self_test"]:
        test = report["self_test"]
        line("self-test", f"planted {test['bug']}; caught by {test['caught'] or 'nothing'}")
    totals = report["totals"]
    cycles = ", ".join(f"{k} {v:,}" for k, v in totals["cycles"].items() if v is not None)
    seconds = ", ".join(f"{k} {v:.1f} s" for k, v in totals["seconds"].items())
    line("whole network", f"{totals['macs']:,} MACs; cycles {cycles or 'none'}; {seconds}")
    if report["not_run"]:
        line("not run", "; ".join(report["not_run"]))


def verdict(report: dict[str, Any]) -> str:
    """One line: the status, and counts of mismatches, waivers and host layers."""
    failing = [
        c
        for layer in report["layers"]
        for c in layer["compare"]
        if c["gate"] and c["status"] in ("different", "missing")
    ]
    compared = sum(c["elements"] for layer in report["layers"] for c in layer["compare"])
    waived = sum(layer["waived"] is not None for layer in report["layers"])
    host = sum(layer["placement"] == "host" for layer in report["layers"])
    text = (
        f"{report['status'].upper()}: {report['model']} on {report['config']}, "
        f"{len(report['layers'])} layers, {compared:,} comparisons of elements, "
        f"{sum(c['mismatches'] for c in failing):,} gating mismatches, {waived} waived layers, "
        f"{host} host layers"
    )
    return f"{text}; {report['error']}" if report["error"] else text
