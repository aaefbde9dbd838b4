"""What was compared, by operator, stage and configuration, kept over runs in a JSON file.

What comes in: outcomes. What goes out: the file, and counts by cell. A case that runs again takes
the place of its older result; the file keeps results by case, so that merging never counts twice.

    {"schema": "accelsim.ops/1", "operators": {NAME: {STAGE: {CONFIG: {CASE: RESULT}}}}}
    RESULT: {"elements": n, "mismatches": n, "attributed": n, "cause": "…", "instructions": […],
             "detail": "…", "origin": "…"}

`detail` says where a case failed, `origin` by which seed and sources the result was made.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelsim.cosim.build import content_hash
from accelsim.errors import InputError
from accelsim.files import folder_for, whole_file, writing
from accelsim.ops.outcome import Outcome, Stage
from accelsim.sources import PACKAGE, rtl_root

SCHEMA = "accelsim.ops/1"
RESULTS = Path("build/ops/results.json")
DEPTH = 4  # operator, stage, configuration, case
COUNTS = ("elements", "mismatches", "attributed")

Cell = tuple[str, str, str]  # operator, stage, configuration


@dataclass(frozen=True, slots=True)
class Count:
    """Totals of one cell."""

    cases: int = 0
    elements: int = 0
    mismatches: int = 0
    attributed: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """A results file: operator → stage → configuration → case → what came out."""

    operators: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]]

    def count(self, cell: Cell) -> Count:
        """Totals of a cell; zeros where it was never run."""
        operator, stage, config = cell
        cases = self.operators.get(operator, {}).get(stage, {}).get(config, {})
        total: Counter[str] = Counter()
        for found in cases.values():
            total.update({k: found[k] for k in COUNTS})
        return Count(len(cases), **total)

    def outcomes(self, cell: Cell, origin: str | None) -> dict[str, Outcome]:
        """Results of a cell by case: those of one origin, or all of them where it is None."""
        operator, stage, config = cell
        cases = self.operators.get(operator, {}).get(stage, {}).get(config, {})
        return {
            case: Outcome(
                f"{operator}/{case}",
                Stage(stage),
                config,
                **{key: found[key] for key in COUNTS},
                detail=str(found.get("detail", "")),
                cause=str(found.get("cause", "")),
                instructions=tuple(found.get("instructions", ())),
            )
            for case, found in cases.items()
            if origin is None or found.get("origin") == origin
        }

    def instructions(self, operator: str) -> set[str]:
        """Names of all instructions that programs of the operator used."""
        stages = self.operators.get(operator, {}).values()
        cases = (
            case for configs in stages for found in configs.values() for case in found.values()
        )
        return {name for case in cases for name in case.get("instructions", ())}


def read_results(path: Path) -> Results:
    """A results file, empty where there is none. Raises InputError where it is another file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Results({})
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}; delete it") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InputError(f"{path} does not have the schema {SCHEMA}; delete it")
    if not _well_formed(content.get("operators"), DEPTH):
        raise InputError(f"{path} is damaged; delete it")
    return Results(content["operators"])


def _well_formed(found: Any, depth: int) -> bool:
    """Whether `depth` levels of objects lie above results with their counts."""
    if not isinstance(found, dict):
        return False
    if depth:
        return all(_well_formed(inner, depth - 1) for inner in found.values())
    names = found.get("instructions", [])
    return all(isinstance(found.get(key), int) and found[key] >= 0 for key in COUNTS) and (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    )


def origin(seed: int) -> str:
    """The seed, and 16 hex digits over the sources of package and RTL."""
    rtl = rtl_root()
    files = [*PACKAGE.rglob("*.py"), *rtl.rglob("*.sv"), *rtl.rglob("*.cpp")]
    return f"{seed}-{content_hash(sorted(files))}"


def merge_results(
    path: Path, outcomes: Iterable[tuple[str, str, str, Outcome]], origin: str = ""
) -> None:
    """Put (operator, case, configuration, outcome) into the file, other runs' cases kept.

    Runs that write at the same time wait for one another. Raises InputError where it cannot be
    written.
    """
    with writing(path), folder_for(path.parent), _locked(path.parent):
        try:
            old = read_results(path)
        except InputError:  # a damaged file is replaced
            old = Results({})
        _write(path, old, outcomes, origin)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other process has the folder; the lock is the system's, and leaves no file."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(
    path: Path, old: Results, outcomes: Iterable[tuple[str, str, str, Outcome]], origin: str
) -> None:
    merged: Any = json.loads(json.dumps(old.operators))
    for operator, case, config, outcome in outcomes:
        stages = merged.setdefault(operator, {})
        cases = stages.setdefault(str(outcome.stage), {}).setdefault(config, {})
        cases[case] = {
            "elements": outcome.elements,
            "mismatches": outcome.mismatches,
            "attributed": outcome.attributed,
            "cause": outcome.cause,
            "instructions": list(outcome.instructions),
            "detail": outcome.detail,
            "origin": origin,
        }
    with whole_file(path) as partial:
        partial.write_text(json.dumps({"schema": SCHEMA, "operators": merged}), encoding="utf-8")
