"""The report as one self-contained HTML page: no script, no font and no picture from outside."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from accelsim.files import whole_file
from accelsim.report import summary
from accelsim.report.plots import Row, bars
from accelsim.report.summary import BACKENDS, GOLDENS

HERE = Path(__file__).parent
SERIES = {"sim": "simulator", "rtl": "RTL"}


def write_html(path: Path, report: dict[str, Any]) -> None:
    """Write the page, whole or not at all."""
    with whole_file(path) as partial:
        partial.write_text(page(report), encoding="utf-8")


def page(report: dict[str, Any]) -> str:
    """HTML text of a report document."""
    return _template().render(
        report=report,
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        summary=summary,
        verdict=summary.verdict(report),
        counts=summary.counts(report),
        failures=summary.failures(report),
        goldens={golden: summary.golden_name(report, golden) for golden in GOLDENS},
        ran=[name for name in BACKENDS if name in report["backends"]],
        names=SERIES,
        plots=plots(report),
        environment=environment(report),
        command=shlex.join(["accelsim", *report["argv"]]),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda v: "–" if v is None else f"{v:,}"
    environment.filters["percent"] = lambda v: "–" if v is None else f"{100 * v:.1f} %"
    return environment.get_template("page.html.j2")


def plots(report: dict[str, Any]) -> dict[str, Markup]:
    """Charts by name; those without data are left out."""
    layers = [layer for layer in report["layers"] if layer["placement"] == "npu"]
    ran = [b for b in BACKENDS if any(layer["cycles"][b] is not None for layer in layers)]
    found: dict[str, Markup] = {}
    if ran:
        rows = [
            Row(
                layer["name"],
                tuple(layer["cycles"][b] for b in ran),
                tuple(f"{layer['cycles'][b]:,}" if layer["cycles"][b] else "" for b in ran),
            )
            for layer in layers
        ]
        found["cycles"] = Markup(bars("Cycles of each layer", rows, ran))
    busy = [layer for layer in layers if layer["macs"]]
    best = [layer["utilization"]["rtl"] or layer["utilization"]["sim"] for layer in busy]
    if any(best):
        rows = [
            Row(layer["name"], (100 * (share or 0.0),), (f"{100 * (share or 0.0):.1f} %",))
            for layer, share in zip(busy, best, strict=True)
        ]
        found["utilization"] = Markup(bars("Utilization of each layer", rows, ["use"], 100.0))
    rows = [
        Row(SERIES.get(name, name), (100 * share,), (f"{100 * share:.2f} %",))
        for name, share, _ in summary.accuracy(report)
    ]
    if rows and summary.shares(report):
        found["accuracy"] = Markup(bars("Accuracy", rows, ["use"], 100.0))
    return found


def environment(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What the run was made of, as (name, value)."""
    hardware = ", ".join(f"{k} {v}" for k, v in report["hardware"].items() if k != "name")
    pairs = [
        ("started", report["started"]),
        ("configuration", f"{report['config']}: {hardware}"),
        ("seed", str(report["seed"])),
        ("input", report["inputs"]),
        ("inputs SHA-256", report["inputs_sha256"]),
        ("program SHA-256", report["program_sha256"]),
        ("RTL SHA-256", report.get("rtl_sha256", "")),
        ("sources SHA-256", report.get("sources_sha256", "")),
        *sorted(report["versions"].items()),
        ("seconds", summary.seconds(report)),
    ]
    return [(name, value) for name, value in pairs if value]
