"""The support matrix: what each operator is, where it runs, and what has been compared of it.

What comes in: the operators found, and results of runs. What goes out: rows, the cells that a row
claims, and those of them in which nothing was compared. It must not know how a case is run.

Arithmetic does not depend on the configuration beyond the sizes of its cases, so its stages are
claimed for the default configuration; instructions are claimed for every named one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from accelsim.ops.operator import Operator
from accelsim.ops.outcome import ARITHMETIC, DEFAULT_CONFIG, Stage
from accelsim.ops.results import Cell, Count, Results
from accelsim.spec.config import CONFIGS, ENGINES
from accelsim.spec.isa import BY_NAME

SCHEMA = "accelsim.ops.matrix/1"


@dataclass(frozen=True, slots=True)
class Row:
    """One operator. `compared` has a count for every claimed cell, zeros where it was not run."""

    operator: Operator
    compared: Mapping[Cell, Count]

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that its instructions run on, in the order of the data."""
        numbers = {BY_NAME[name].engine for name in self.operator.facts.instructions}
        return tuple(name for number, name in enumerate(ENGINES) if number in numbers)


def claimed_cells(operator: Operator) -> tuple[Cell, ...]:
    """Operator × stage × configuration that the matrix claims for one operator."""
    return tuple(
        (operator.name, str(stage), config)
        for stage in operator.stages
        for config in ((DEFAULT_CONFIG,) if stage in ARITHMETIC else CONFIGS)
    )


def support_matrix(operators: Iterable[Operator], results: Results) -> tuple[Row, ...]:
    """A row for each operator."""
    return tuple(
        Row(one, {cell: results.count(cell) for cell in claimed_cells(one)}) for one in operators
    )


def empty_cells(rows: Iterable[Row]) -> tuple[str, ...]:
    """Claimed cells in which nothing was compared, as sentences."""
    return tuple(
        f"{operator}: nothing was compared in stage {stage} on {config}"
        for row in rows
        for (operator, stage, config), count in row.compared.items()
        if not count.elements
    )


def wrong_instructions(operators: Iterable[Operator], results: Results) -> tuple[str, ...]:
    """Where programs that were compared use other instructions than an operator names."""
    found = []
    for operator in operators:
        used, named = results.instructions(operator.name), set(operator.facts.instructions)
        found += [
            f"{operator.name}: names the instruction {name}, and no compared program has used it"
            for name in sorted(named - used)
        ]
        found += [
            f"{operator.name}: a program uses the instruction {name}, which it does not name"
            for name in sorted(used - named)
        ]
    return tuple(found)


def to_json(rows: Iterable[Row]) -> dict[str, Any]:
    """The matrix as `accelsim ops --json` prints it."""
    return {"schema": SCHEMA, "operators": {row.operator.name: _row(row) for row in rows}}


def _row(row: Row) -> dict[str, Any]:
    compared: dict[str, dict[str, Any]] = {}
    for (_, stage, config), count in row.compared.items():
        compared.setdefault(stage, {})[config] = asdict(count) if count.cases else "not run"
    facts = row.operator.facts
    return {
        "types": facts.types,
        "limits": list(facts.limits),
        "runs_on": list(row.engines),
        "instructions": list(facts.instructions),
        "rounding": list(facts.roundings),
        "bit_exact": list(facts.exact),
        "notes": facts.notes,
        "compared": compared,
    }


def cell_text(row: Row, stage: Stage, config: str) -> str:
    """Elements compared in a cell, "not run", or "-" where nothing is claimed."""
    count = row.compared.get((row.operator.name, str(stage), config))
    if count is None:
        return "-"
    if not count.cases:
        return "not run"
    return f"{count.elements:,}" + (f" ({count.mismatches:,} differ)" if count.mismatches else "")
