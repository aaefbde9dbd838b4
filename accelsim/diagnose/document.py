"""What was found, as text and as JSON.

What comes in: a `DiagnoseRecord`. What goes out: lines for people, and a document of schema
"accelsim.diagnose/1".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from accelsim.calibrate.noise import LOUDEST_DB
from accelsim.diagnose.noise import noisiest
from accelsim.diagnose.record import VERDICTS, DiagnoseRecord, Fault, LayerRow, Rung
from accelsim.diagnose.verdict import ranges

SCHEMA = "accelsim.diagnose/1"
EXACT = LOUDEST_DB  # no noise at all


def document(record: DiagnoseRecord) -> dict[str, Any]:
    """The JSON form; decibels that were not measured are null."""
    given = record.options.verify
    return {
        "schema": SCHEMA,
        "model": given.model,
        "config": given.config.name,
        "backends": list(given.backends),
        "input": record.input_origin,
        "label": record.label,
        "rungs": [_rung(one) for one in record.rungs],
        "first_change": record.first_change or None,
        "inputs": [asdict(one) for one in record.inputs],
        "layers": [asdict(one) for one in record.layers],
        "noisiest": [row.name for row in noisiest(record.layers)],
        "verdict": record.verdict or None,
        "faults": [asdict(one) for one in record.faults],
        "notes": record.notes,
        "replay": record.replay,
        "exit_code": record.exit_code,
        "error": record.error,
    }


def _rung(one: Rung) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "ran": one.outputs is not None,
        "classes": None if one.classes is None else list(one.classes),
        "top": [{"index": index, "value": value} for index, value in one.top],
        "output_db": one.output_db,
        "note": one.note,
    }


def text(record: DiagnoseRecord) -> Iterator[str]:
    """Lines for people; the last is the verdict."""
    if record.rungs:
        label = "" if record.label is None else f", label {record.label}"
        yield f"{record.options.verify.model}: {record.input_origin}{label}"
        yield ""
        yield from _rungs(record)
    yield from map(ranges, record.inputs)
    if record.layers:
        yield ""
        yield from _layers(record.layers)
    if not record.complete:
        return
    yield ""
    yield from (f"note: {one}" for one in record.notes)
    for fault in record.faults[1:]:
        yield f"also {fault.kind}: {fault.sentence}"
        yield from _details(fault)
    if not record.faults:
        changed = f"the class first changes at {record.first_change}, and " * bool(
            record.first_change
        )
        yield f"VERDICT: {record.verdict}: {changed}every rung gives what the one before gives"
        return
    yield f"VERDICT: {record.verdict}: {record.faults[0].sentence}"
    yield from _details(record.faults[0])
    if any(one.kind in VERDICTS[2:] for one in record.faults):
        yield f"    {record.replay}"


def _rungs(record: DiagnoseRecord) -> Iterator[str]:
    classes = any(one.classes is not None for one in record.rungs)
    head = "class" if classes else "     "
    yield f"{'rung':10}{head}  {'greatest, place: value':44}{'dB':>7}  what"
    for one in record.rungs:
        if one.outputs is None:
            yield f"{one.name:10}{'-':>5}  {one.note or 'no result':44}{'':>7}  {one.title}"
            continue
        top = ", ".join(f"{index}: {value:.4g}" for index, value in one.top)
        said = "" if one.classes is None else ",".join(map(str, one.classes[:4]))
        mark = "  <- the class changes" if one.name == record.first_change else ""
        yield f"{one.name:10}{said:>5}  {top:44}{_db(one.output_db):>7}  {one.title}{mark}"


def _layers(rows: list[LayerRow]) -> Iterator[str]:
    width = max(len("layer"), *(len(row.name) for row in rows))
    operator = max(len("operator"), *(len(row.operator) for row in rows))
    yield f"{'layer':{width}}  {'operator':{operator}}  {'SQNR dB':>8}  {'lost dB':>8}  clipped"
    for row in rows:
        yield (
            f"{row.name:{width}}  {row.operator:{operator}}  {_db(row.sqnr_db):>8}  "
            f"{row.lost_db:8.1f}  {row.clipped:7.1%}"
        )
    loud = noisiest(rows)
    if loud:
        named = ", ".join(f"{row.name} ({row.lost_db:.1f} dB)" for row in loud)
        yield f"noise is made in {named}"


def _db(value: float | None) -> str:
    if value is None:
        return ""
    return "exact" if value >= EXACT else f"{value:.1f}"


def _details(fault: Fault) -> Iterator[str]:
    yield from (f"    {one}" for one in fault.details)
