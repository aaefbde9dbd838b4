"""What became of a case: passed, failed or out of scope, and how far it was from the peer.

What comes in: outcomes. What goes out: the JSON document and the table. It must not know any peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = "accelsim.peers/1"
PASSED, FAILED, OUT_OF_SCOPE = "passed", "failed", "out_of_scope"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case. `mismatches` and `largest` are differences from the peer, in output steps."""

    suite: str
    case: str
    status: str
    detail: str = ""  # why it failed or is out of scope
    elements: int = 0
    mismatches: int = 0
    largest: int = 0
    cause: str = ""  # what was computed to explain every mismatch of a case that passed


def document(suites: Iterable[str], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The JSON document, one entry a suite that ran."""
    return {"schema": SCHEMA, "suites": {name: _suite(name, outcomes) for name in suites}}


def _suite(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    mine = [outcome for outcome in outcomes if outcome.suite == name]
    return {
        PASSED: sum(outcome.status == PASSED for outcome in mine),
        FAILED: sum(outcome.status == FAILED for outcome in mine),
        OUT_OF_SCOPE: [
            {"case": outcome.case, "reason": outcome.detail}
            for outcome in mine
            if outcome.status == OUT_OF_SCOPE
        ],
    }


def table(suites: Iterable[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Counts by suite, then reasons, then differences with their causes."""
    yield f"{'suite':14}{'passed':>8}{'failed':>8}{'out of scope':>14}{'elements':>12}{'differ':>9}"
    for name in suites:
        mine = [outcome for outcome in outcomes if outcome.suite == name]
        counts = [sum(o.status == s for o in mine) for s in (PASSED, FAILED, OUT_OF_SCOPE)]
        elements, differ = sum(o.elements for o in mine), sum(o.mismatches for o in mine)
        yield f"{name:14}{counts[0]:8}{counts[1]:8}{counts[2]:14}{elements:12}{differ:9}"
    out = [outcome for outcome in outcomes if outcome.status == OUT_OF_SCOPE]
    for name, reason in sorted({(o.suite, o.detail) for o in out}):
        cases = [o.case for o in out if (o.suite, o.detail) == (name, reason)]
        yield f"{name}: {len(cases)} out of scope, {reason}: {', '.join(cases)}"
    for name, cause in sorted({(o.suite, o.cause) for o in outcomes if o.cause}):
        same = [o for o in outcomes if (o.suite, o.cause) == (name, cause)]
        differ, elements = sum(o.mismatches for o in same), sum(o.elements for o in same)
        largest = max(o.largest for o in same)
        yield f"{name}: {differ} of {elements} elements differ, by {largest} at most: {cause}"
