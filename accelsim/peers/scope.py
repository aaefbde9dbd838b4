"""The committed list of cases that are out of scope, and what is wrong with it.

What comes in: `out_of_scope.toml`, a table a suite and reason with its cases, and outcomes. What
goes out: outcomes, failed where a case is out of scope without an entry for it with its reason, or
an entry that no case needs. Case "*" means every case of a suite that is out of scope for that very
reason: of suites whose cases are files that anyone may add.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accelsim.errors import InputError
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, Outcome

LIST = Path(__file__).with_name("out_of_scope.toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """One case of the list."""

    suite: str
    case: str
    reason: str

    def covers(self, outcome: Outcome) -> bool:
        """Whether the outcome is out of scope as this entry says."""
        return (
            outcome.status == OUT_OF_SCOPE
            and outcome.suite == self.suite
            and self.case in ("*", outcome.case)
            and outcome.detail == self.reason
        )


def read_list(path: Path = LIST) -> tuple[Entry, ...]:
    """The entries of the list. Raises InputError for a field that is missing or unknown."""
    entries: list[Entry] = []
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for table in content.pop("out_of_scope", []):
            suite, reason, cases = (table.pop(key) for key in ("suite", "reason", "cases"))
            entries += [Entry(suite, case, reason) for case in cases]
            content |= table
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{path.name}: an [[out_of_scope]] has suite, reason and cases: {error}"
        ) from None
    if content:
        raise InputError(f"{path.name}: nothing is known of {', '.join(content)}")
    return tuple(entries)


def judged(outcomes: Sequence[Outcome], entries: Sequence[Entry]) -> list[Outcome]:
    """The outcomes, failed where nothing lists them as out of scope."""
    return [
        replace(outcome, status=FAILED, detail=f"out of scope, and not listed: {outcome.detail}")
        if outcome.status == OUT_OF_SCOPE and not any(e.covers(outcome) for e in entries)
        else outcome
        for outcome in outcomes
    ]


def unused(outcomes: Sequence[Outcome], entries: Sequence[Entry]) -> Iterator[Outcome]:
    """A failure for every entry whose cases ran, none of them out of scope as it says."""
    for entry in entries:
        ran = [
            outcome
            for outcome in outcomes
            if outcome.suite == entry.suite and entry.case in ("*", outcome.case)
        ]
        if ran and not any(entry.covers(outcome) for outcome in ran):
            text = f"{LIST.name} lists {entry.case} as out of scope ({entry.reason}); it is not"
            yield Outcome(entry.suite, entry.case, FAILED, text)
