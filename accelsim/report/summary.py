"""What a report says in words, for a terminal and for a page alike.

What comes in: a report document (`accelsim.verify/2`). What goes out: sentences and groups. It
knows neither colours nor columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Report = dict[str, Any]
GOLDENS = ("integer", "framework", "tvm")
BACKENDS = ("sim", "rtl")
_SHORT = {"": "framework", "onnxruntime": "ort"}
TVM = (
    "tvm is TVM's float32 run of the same quantized network: it rounds where integer arithmetic "
    "has nothing to round, so it differs by single steps, which is reported and gates nothing."
)


def golden_name(report: Report, golden: str) -> str:
    """What a table calls a golden: the framework's by the framework."""
    own = report["framework"]["golden"]
    return str(_SHORT.get(own, own)) if golden == "framework" else golden


def legend(report: Report) -> str:
    """What the columns of mismatches mean."""
    title = report["framework"]["title"] or "the framework's own kernels"
    return (
        "Mismatches are isolated+accumulated: the layer alone on golden inputs, and in the whole "
        "network. integer (int) is the integer reference and gates both; "
        f"{golden_name(report, 'framework')} is {title} and gates the first. use: multiplications "
        "a cycle, out of the array's LANES²."
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """Mismatches of one layer on one backend against one golden."""

    text: str  # "isolated+accumulated", "-" where nothing was compared
    state: str  # "equal" | "failing" | "waived" | "reported" | "absent"


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason why a run failed, or one waived difference."""

    layer: str
    title: str
    details: tuple[str, ...]
    instruction: str = ""  # disassembled
    waived: str | None = None
    inherited: bool = False  # right on golden inputs, wrong on what earlier layers gave it


def fails(comparison: dict[str, Any]) -> bool:
    """Whether a comparison gates and is not equal; a waiver may still cover it."""
    return bool(comparison["gate"]) and comparison["status"] in ("different", "missing")


def cell(layer: dict[str, Any], backend: str, golden: str) -> Cell:
    """What a table shows of a layer."""
    chosen = [
        c
        for mode in ("isolated", "accumulated")
        for c in layer["compare"]
        if (c["actual"], c["golden"], c["mode"]) == (backend, golden, mode)
    ]
    text = "+".join("none" if c["status"] == "missing" else f"{c['mismatches']:,}" for c in chosen)
    failing = [c for c in chosen if fails(c)]
    if not chosen:
        return Cell("-", "absent")
    if any(c["waived"] is None for c in failing):
        return Cell(text, "failing")
    if failing:
        return Cell(text, "waived")
    differs = any(c["status"] in ("different", "missing") for c in chosen)
    return Cell(text, "reported" if differs else "equal")


def state_of(layer: dict[str, Any]) -> str:
    """ "failing", "waived" or "equal"."""
    failing = [c for c in layer["compare"] if fails(c)]
    host = layer["placement"] == "host"
    if any(c["waived"] is None for c in failing) or (host and layer["waived"] is None):
        return "failing"
    return "waived" if failing or host else "equal"


def failures(report: Report) -> list[Failure]:
    """What went wrong, the likely origins first.

    A layer that is wrong on golden inputs comes before one that only passes on what it was given,
    and what is waived comes last.
    """
    found: list[tuple[int, Failure]] = []
    for layer in report["layers"]:
        if layer["placement"] == "host":
            title = f"layer {layer['name']} ran on the host"
            why = (str(layer["reason"]),)
            failure = Failure(layer["name"], title, why, waived=layer["waived"])
            found.append((3 if failure.waived else 0, failure))
        for backend in BACKENDS:
            wrong = [c for c in layer["compare"] if c["actual"] == backend and fails(c)]
            open_, waived = [c for c in wrong if not c["waived"]], [c for c in wrong if c["waived"]]
            if open_:
                failure = _failure(report, layer["name"], open_)
                found.append((2 if failure.inherited else 0, failure))
            if waived:
                found.append((3, _failure(report, layer["name"], waived)))
    found += [(1, Failure("", problem, ())) for problem in report["problems"]]
    return [failure for _, failure in sorted(found, key=lambda one: one[0])]


def _failure(report: Report, name: str, wrong: list[dict[str, Any]]) -> Failure:
    """All failing comparisons of one layer on one backend; the first stands for them."""
    c, *others = [one | {"golden": golden_name(report, one["golden"])} for one in wrong]
    head = f"layer {name}, {c['actual']}"
    if c["status"] == "missing":
        title = f"{head}: nothing to compare with {c['golden']}, {c['mode']}"
        details = [c["cause"] or ""]
    else:
        title = (
            f"{head}: {c['mismatches']:,} of {c['elements']:,} elements differ from "
            f"{c['golden']}, {c['mode']}, by at most {c['max_abs_diff']}"
        )
        details = [*_where(c), *([c["cause"]] if c["cause"] else [])]
    if others:
        rest = (
            f"{o['golden']} {o['mode']} "
            + ("missing" if o["status"] == "missing" else f"{o['mismatches']:,}")
            for o in others
        )
        details.append(f"also: {', '.join(rest)}")
    text = "" if c["first"] is None else str(c["first"]["text"])
    inherited = all(o["mode"] == "accumulated" and o["status"] != "missing" for o in wrong)
    return Failure(name, title, tuple(details), text, c["waived"], inherited)


def inherited(found: list[Failure]) -> str:
    """One sentence about the layers that are wrong only in the whole network; "" if none is."""
    names = dict.fromkeys(failure.layer for failure in found if failure.inherited)
    if not names:
        return ""
    return f"right on golden inputs, wrong only in the whole network: {', '.join(names)}"


def _where(c: dict[str, Any]) -> list[str]:
    first = c["first"]
    if first is None:
        return []
    place = ", ".join(str(i) for i in first["index"])
    text = f"first at [n, h, w, c] = [{place}]: expected {first['expected']}, got {first['actual']}"
    if first["instruction"] >= 0:
        text += f"; tile {first['tile']}, instruction {first['instruction']}"
    return [text]


def counts(report: Report) -> dict[str, int]:
    """Numbers of the verdict."""
    comparisons = [c for layer in report["layers"] for c in layer["compare"]]
    return {
        "layers": len(report["layers"]),
        "failing layers": sum(state_of(layer) == "failing" for layer in report["layers"]),
        "comparisons": sum(c["elements"] for c in comparisons if c["gate"]),
        "mismatches": sum(c["mismatches"] for c in comparisons if fails(c) and c["waived"] is None),
        "waivers": len(report["waivers"]),
        "host layers": sum(layer["placement"] == "host" for layer in report["layers"]),
        "problems": len(report["problems"]),
    }


def verdict(report: Report) -> str:
    """One line: the status, and counts of mismatches, waivers and host layers."""
    n = counts(report)
    parts = [_count(n["layers"], "layer")]
    if n["failing layers"]:
        parts.append(f"{n['failing layers']} of them failing")
    parts += [
        f"{n['comparisons']:,} elements compared",
        _count(n["mismatches"], "mismatch", "mismatches"),
        _count(n["waivers"], "waiver"),
        _count(n["host layers"], "host layer"),
    ]
    if n["problems"]:
        parts.append(_count(n["problems"], "problem"))
    text = f"{report['status'].upper()}: {report['model']} on {report['config']}: "
    text += ", ".join(parts)
    return f"{text}; {report['error']}" if report["error"] else text


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def exercised(report: Report) -> list[tuple[str, str]]:
    """What was exercised, in groups: (title, text)."""
    left = dict(report["exercised"])
    cycles = report["totals"]["cycles"]
    whole = cycles.get("sim") or cycles.get("rtl") or 0

    def take(suffix: str = "", prefix: str = "") -> dict[str, int]:
        names = [n for n in left if n.endswith(suffix) and n.startswith(prefix)]
        return {n.removeprefix(prefix).removesuffix(suffix): left.pop(n) for n in names}

    def plain(values: dict[str, int]) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in values.items())

    def share(values: dict[str, int]) -> str:
        return ", ".join(
            f"{name.replace('_', ' ')} {100 * value / whole:.0f} %" if whole else name
            for name, value in values.items()
        )

    groups = [
        ("instructions", plain(take(prefix="op_"))),
        ("tiling", plain({"tiles": left.pop("tiles", 0)} | take(prefix="layers_with_"))),
        ("padding", plain({"zero points": left.pop("pad_zero_points", 0)})),
        ("saturated", plain(take(prefix="saturated_"))),
        ("engines busy", share(take("_busy_cycles"))),
        ("engines waiting", share(take("_wait_cycles"))),
        ("dispatch", share({"stalled": left.pop("dispatch_stall_cycles", 0)})),
        ("bus beats", plain(take("_beats"))),
        ("other", plain(left)),
    ]
    return [(title, text) for title, text in groups if text and report["exercised"]]


def accuracy(report: Report) -> list[tuple[str, float, int]]:
    """(source, the metric's number, samples)."""
    found = report["accuracy"]
    names = (
        name for name in ("float", "framework", "integer", *BACKENDS) if name in found["samples"]
    )
    return [
        (_source(report, name), found[name], found["samples"][name])
        for name in names
        if found[name] is not None
    ]


def shares(report: Report) -> bool:
    """Whether the numbers of the metric are shares of right answers."""
    return str(report["accuracy"]["metric"]) in ("top1", "top5")


def accuracy_title(report: Report) -> str:
    """What the numbers of the metric are called."""
    metric = str(report["accuracy"]["metric"])
    return "accuracy" if metric == "top1" else f"{metric} accuracy" if shares(report) else metric


def number(report: Report, value: float) -> str:
    """A number of the metric as text."""
    return f"{100 * value:.2f} %" if shares(report) else f"{value:.4g}"


def agreement(report: Report) -> list[tuple[str, str]]:
    """(whose answers, how many are the framework's) of every backend."""
    own = _source(report, "framework")
    return [
        (f"same class as {own}, {name}", f"{same:,} of {samples:,} samples")
        for name, (same, samples) in report["accuracy"]["agreement"].items()
    ]


def _source(report: Report, name: str) -> str:
    return f"{golden_name(report, name)} int8" if name == "framework" else name


def seconds(report: Report) -> str:
    """Seconds of the steps that took any."""
    spent = report["totals"]["seconds"]
    return ", ".join(f"{name} {value:.1f} s" for name, value in spent.items() if value)
