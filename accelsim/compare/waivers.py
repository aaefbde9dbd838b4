"""Waivers: differences that a team accepts by name, for a reason, until a day.

The file is TOML with one table `[[waive]]` a waiver: `layer`, `golden`, `reason`, `expires`
(YYYY-MM-DD). No wildcards. `golden` is "integer", "framework" (PyTorch, LiteRT or ONNX Runtime,
whichever the model came from) or "tvm", or "host" for a layer that ran on the host.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from accelsim.artifacts import Comparison, LayerReport
from accelsim.errors import InputError

GOLDENS = ("integer", "framework", "tvm", "host")


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted difference."""

    layer: str
    golden: str
    reason: str
    expires: date


def read_waivers(path: Path, today: date) -> tuple[Waiver, ...]:
    """The waivers of a file. Raises InputError naming the waiver and what is wrong with it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read waivers {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"waivers {path} are not valid TOML: {error}") from None
    entries = table.pop("waive", [])
    if table or not isinstance(entries, list) or not entries:
        raise InputError(f"waivers {path}: expected one or more [[waive]] tables and nothing else")
    return tuple(_waiver(path, i, entry, today) for i, entry in enumerate(entries, 1))


def _waiver(path: Path, number: int, entry: object, today: date) -> Waiver:
    where = f"waivers {path}, waiver {number}"
    keys = {"layer", "golden", "reason", "expires"}
    if not isinstance(entry, dict) or set(entry) != keys:
        raise InputError(f"{where}: expected exactly the keys {', '.join(sorted(keys))}")
    for key in ("layer", "golden", "reason"):
        if not isinstance(entry[key], str) or not entry[key].strip():
            raise InputError(f"{where}: {key} must be a text that is not empty")
    if any(c in entry["layer"] for c in "*?["):
        raise InputError(f"{where}: layer {entry['layer']!r} has a wildcard; name one layer")
    if entry["golden"] not in GOLDENS:
        raise InputError(f"{where}: golden {entry['golden']!r} is not one of {', '.join(GOLDENS)}")
    day = _day(entry["expires"])
    if day is None:
        raise InputError(f"{where}: expires {entry['expires']} is not a date YYYY-MM-DD")
    if day < today:
        raise InputError(f"{where}: it expired on {day}; renew it with a reason, or remove it")
    return Waiver(entry["layer"], entry["golden"], entry["reason"], day)


def _day(value: object) -> date | None:
    """A day without a time, as TOML has it or as text; None for anything else."""
    if type(value) is date:  # a datetime is a date too
        return value
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def apply_waivers(
    layers: Sequence[LayerReport], waivers: Sequence[Waiver]
) -> tuple[tuple[LayerReport, ...], tuple[Waiver, ...]]:
    """Layers with their waivers noted, and the waivers that were needed, in their order."""
    result, used = [], set()
    for layer in layers:
        for waiver in waivers:
            if waiver.layer == layer.name and _needed(layer, waiver.golden):
                used.add(waiver)
                layer = _waive(layer, waiver)
        result.append(layer)
    return tuple(result), tuple(w for w in waivers if w in used)


def not_needed(waiver: Waiver) -> str:
    """What is wrong with a waiver that no layer needed."""
    return (
        f"waiver of layer {waiver.layer!r} for golden {waiver.golden!r} was not needed; remove it"
    )


def failing(comparison: Comparison) -> bool:
    """Whether a comparison fails its layer: it gates, it is not equal, and no waiver covers it."""
    wrong = comparison.status in ("different", "missing")
    return comparison.gate and wrong and comparison.waived is None


def _needed(layer: LayerReport, golden: str) -> bool:
    if golden == "host":
        return layer.placement == "host"
    return any(c.golden == golden and failing(c) for c in layer.compare)


def _waive(layer: LayerReport, waiver: Waiver) -> LayerReport:
    reason = f"{waiver.reason} (until {waiver.expires})"
    compare = tuple(
        replace(c, waived=reason) if c.golden == waiver.golden and failing(c) else c
        for c in layer.compare
    )
    waived = reason if layer.waived is None else f"{layer.waived}; {reason}"
    return replace(layer, compare=compare, waived=waived)
