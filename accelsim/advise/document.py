"""What was found, as text and as JSON.

What comes in: an `AdviseRecord`. What goes out: lines for people, and a document of schema
"accelsim.advise/1".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from accelsim.advise.record import AdviseRecord, Change, Costs, Finding
from accelsim.advise.rules import all_rules

SCHEMA = "accelsim.advise/1"


def document(record: AdviseRecord) -> dict[str, Any]:
    """The JSON form; numbers that were not measured are null."""
    options = record.options
    return {
        "schema": SCHEMA,
        "model": options.model,
        "config": options.config.name,
        "costs": None if record.costs is None else asdict(record.costs),
        "findings": [asdict(one) for one in record.findings],
        "replacements": {name: _described(name) for name in all_rules()},
        "change": None if record.change is None else asdict(record.change),
        "error": record.error,
    }


def _described(name: str) -> dict[str, Any]:
    rule = all_rules()[name]
    return {"what": rule.what, "why": rule.why, "exact": rule.exact}


def text(record: AdviseRecord) -> Iterator[str]:
    """Lines for people."""
    if record.costs is None:
        return
    yield _line(record.options.config.name, record.costs)
    if not record.findings:
        yield "nothing to advise: no layer on the host, none that idles, none with a cheaper form"
    for one in record.findings:
        yield _finding(one)
    fitting = {rule for one in record.findings for rule in one.rules}
    if fitting and not record.options.apply:
        yield ""
        yield "replacements, to be tried with --apply NAME or --apply NAME:LAYER"
        for name, rule in all_rules().items():
            if name in fitting:
                yield f"  {name:18} {rule.what}: {rule.why}"
    if record.change is not None:
        yield from _change(record.change)


def _line(config: str, costs: Costs) -> str:
    return (
        f"{config}: {costs.cycles:,} cycles, {costs.dram_bytes:,} bytes moved, "
        f"{costs.macs:,} MACs, {costs.host_layers} layers on the host"
    )


def _finding(one: Finding) -> str:
    rules = f"  [{', '.join(one.rules)}]" if one.rules else ""
    share = f"{one.share:5.1%}" if one.share else " host"
    return f"{share}  {one.layer} ({one.operator}) {one.problem}{rules}"


def _change(change: Change) -> Iterator[str]:
    yield ""
    yield "replaced:"
    yield from (f"  {one}" for one in change.replaced)
    if change.snr_db is not None:
        yield f"float outputs before training: {change.snr_db:.1f} dB of signal over difference"
    if change.trained_epochs:
        yield f"trained for {change.trained_epochs} epochs"
    for name, values in change.accuracy.items():
        numbers = ", ".join(f"{key} {value:.4g}" for key, value in values.items())
        yield f"  {name:15} {numbers}"
    before, after = change.before, change.after
    if before is not None and after is not None:
        yield "                       before          after"
        for name, old, new in (
            ("cycles", before.cycles, after.cycles),
            ("bytes moved", before.dram_bytes, after.dram_bytes),
            ("MACs", before.macs, after.macs),
            ("host layers", before.host_layers, after.host_layers),
        ):
            ratio = f"  ×{new / old:.2f}" if old else ""
            yield f"  {name:12} {old:14,} {new:14,}{ratio}"
    if change.written:
        yield f"written: {change.written}"
