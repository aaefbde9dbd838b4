"""report.json, schema accelsim.verify/2: a contract for scripts, extended but never renamed.

One shape whatever framework the model came from: `framework` names it and its golden, which
comparisons and accuracy call "framework".
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Protocol

from accelsim.artifacts import Comparison, LayerReport
from accelsim.compare import Waiver

SCHEMA = "accelsim.verify/2"
_NO_FRAMEWORK = {"name": "", "golden": "", "title": ""}


class Record(Protocol):
    """What a report needs of a run; `verify.RunRecord` has it."""

    model: str
    config: str
    seed: int
    replay: str
    versions: Any
    hardware: Any
    hashes: Any
    argv: Any
    backends: Any
    framework: Any
    started: str
    status: str
    exit_code: int
    error: str | None
    inputs_sha256: str
    program_sha256: str
    input_origin: str
    layers: list[LayerReport]
    exercised: dict[str, int]
    cycles: dict[str, int]
    seconds: dict[str, float]
    accuracy: Any
    self_test: dict[str, str]
    checks: list[dict[str, object]]
    problems: list[str]
    waivers: list[Waiver]
    notes: list[str]
    not_run: list[str]


def document(record: Record) -> dict[str, Any]:
    """The report as JSON-ready values."""
    accuracy: dict[str, Any] = dict.fromkeys(("float", "framework", "integer", "sim", "rtl"))
    accuracy |= {"metric": "", "samples": {}, "agreement": {}}
    if record.accuracy is not None:
        accuracy["metric"] = record.accuracy.metric
        accuracy |= {name: _number(value) for name, value in record.accuracy.share.items()}
        accuracy["samples"] = dict(record.accuracy.samples)
        accuracy["agreement"] = {name: list(one) for name, one in record.accuracy.agreement.items()}
    seconds = {"compile": 0.0, "sim": 0.0, "rtl": 0.0} | record.seconds
    return {
        "schema": SCHEMA,
        "model": record.model,
        "config": record.config,
        "status": record.status,
        "exit_code": record.exit_code,
        "error": record.error,
        "problems": list(record.problems),
        "notes": list(record.notes),
        "seed": record.seed,
        "backends": list(record.backends),
        "framework": _NO_FRAMEWORK | dict(record.framework),
        "started": record.started,
        "argv": list(record.argv),
        "versions": dict(record.versions),
        "hardware": dict(record.hardware),
        **record.hashes,
        "inputs": record.input_origin,
        "inputs_sha256": record.inputs_sha256,
        "program_sha256": record.program_sha256,
        "replay": record.replay,
        "layers": [_layer(layer, record.hardware) for layer in record.layers],
        "waivers": [asdict(w) | {"expires": str(w.expires)} for w in record.waivers],
        "exercised": dict(record.exercised),
        "checks": list(record.checks),
        "self_test": dict(record.self_test),
        "not_run": list(record.not_run),
        "totals": {
            "macs": sum(layer.macs for layer in record.layers),
            "cycles": {"sim": None, "rtl": None} | record.cycles,
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
        },
        "accuracy": accuracy,
    }


def _layer(layer: LayerReport, hardware: Any) -> dict[str, Any]:
    cycles = {"sim": None, "rtl": None} | dict(layer.cycles)
    peak = hardware["lanes"] ** 2
    return {
        "name": layer.name,
        "op": layer.op,
        "members": list(layer.members),
        "placement": layer.placement,
        "reason": layer.reason,
        "waived": layer.waived,
        "elements": layer.elements,
        "macs": layer.macs,
        "tiles": layer.tiles,
        "facts": dict(layer.facts),
        "compare": [_comparison(c) for c in layer.compare],
        "cycles": cycles,
        "utilization": {  # multiplications a cycle, of those that the matrix engine's array has
            name: round(layer.macs / (peak * count), 4) if count and layer.macs else None
            for name, count in cycles.items()
        },
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    result = asdict(comparison)
    if comparison.first is not None:
        result["first"]["index"] = list(comparison.first.index)
    return result


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
