"""A slice of every operator's regression, and no claim of the support matrix without a proof.

On edge8 a few cases run in all stages; on the other configurations one case runs as instructions.
What the matrix claims is held against the results that the slice wrote, not against its tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from accelsim.errors import AccelsimError
from accelsim.ops import STAGES, Outcome, Stage, known_operators, operator_of
from accelsim.ops.matrix import empty_cells, support_matrix, wrong_instructions
from accelsim.ops.operators import register
from accelsim.ops.outcome import ARITHMETIC, DEFAULT_CONFIG
from accelsim.ops.results import merge_results, read_results
from accelsim.ops.session import Item, Selection, Session
from accelsim.spec.config import CONFIGS

CASES = (
    *("plain", "one_channel", "zero_points_high", "random0"),
    *("plain_tflite", "plain_onnxruntime"),
    # What movements do with other instructions: another scale, channels that move.
    *("rescaled", "no_multiplier", "channels", "every_third_channel", "second"),
)
INSTRUCTIONS = tuple(stage for stage in STAGES if stage not in ARITHMETIC)
pytestmark = pytest.mark.rtl


@dataclass(slots=True)
class Slice:
    """Sessions over the same results; each item runs once, when a test first asks for it."""

    results: Path
    sessions: tuple[Session, ...]
    failures: dict[Item, str]

    def run(self, operator: str) -> list[Item]:
        """Run what is left of an operator; its items."""
        items = []
        for session in self.sessions:
            for item in session.items():
                if item.operator != operator:
                    continue
                items.append(item)
                if item not in self.failures:
                    self.failures[item] = _failure(session, item)
        return items

    def write(self) -> None:
        """Write the results of all that ran, at once: a session that has a file does it often."""
        for session in self.sessions:
            session.close()
            rows = [(i.operator, i.case, i.config, found) for i, found in session.outcomes]
            merge_results(self.results, rows, session.origin)


def _failure(session: Session, item: Item) -> str:
    """What is wrong with an item and how to replay it, or nothing."""
    try:
        outcome = session.run(item)
    except AccelsimError as error:
        return session.failure(item, error)
    return session.failure(item, outcome) if outcome.failed else ""


def slice_of(operators: tuple[str, ...], results: Path) -> Slice:
    """The default slice of some operators."""
    others = tuple(config for name, config in CONFIGS.items() if name != DEFAULT_CONFIG)
    edge8 = Selection(operators, (CONFIGS[DEFAULT_CONFIG],), random=1, cases=CASES)
    wide = Selection(operators, others, random=0, cases=("plain",), stages=INSTRUCTIONS)
    return Slice(results, tuple(map(Session, (edge8, wide))), {})


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slice]:
    """All operators: each test compiles its own operator only."""
    found = slice_of(tuple(known_operators()), tmp_path_factory.mktemp("ops") / "results.json")
    yield found
    found.write()


@pytest.mark.parametrize("operator", known_operators())
def test_operator_equals_its_goldens_at_every_stage(everything: Slice, operator: str) -> None:
    items = everything.run(operator)
    failures = [everything.failures[item] for item in items if everything.failures[item]]
    assert not failures, "\n".join(failures)
    stages = operator_of(operator).stages
    assert {item.stage for item in items} == set(stages)


def test_matrix_claims_nothing_that_was_not_compared(everything: Slice) -> None:
    operators = known_operators()
    for name in operators:
        everything.run(name)
    everything.write()
    results = read_results(everything.results)
    assert empty_cells(support_matrix(operators.values(), results)) == ()
    assert wrong_instructions(operators.values(), results) == ()


def test_instruction_named_too_many_or_too_few_is_a_wrong_claim(tmp_path: Path) -> None:
    add = operator_of("add")
    outcome = Outcome("add/plain", Stage.SIM, "edge8", 9, 0, instructions=add.facts.instructions)
    merge_results(tmp_path / "results.json", [("add", "plain", "edge8", outcome)])
    results = read_results(tmp_path / "results.json")
    assert wrong_instructions((add,), results) == ()
    more = replace(add, facts=replace(add.facts, instructions=(*add.facts.instructions, "pool")))
    (said,) = wrong_instructions((more,), results)
    assert said == "add: names the instruction pool, and no compared program has used it"
    fewer = replace(add, facts=replace(add.facts, instructions=("load", "store")))
    (said,) = wrong_instructions((fewer,), results)
    assert said == "add: a program uses the instruction add, which it does not name"


def test_operator_without_cases_is_an_empty_claim(known: dict[str, object], tmp_path: Path) -> None:
    bare = replace(operator_of("add"), name="bare", edges=lambda config: ())
    register(bare)
    planted = slice_of(("bare",), tmp_path / "results.json")
    planted.sessions = planted.sessions[1:]  # random0 is a case of edge8
    planted.run("bare")
    planted.write()
    empty = empty_cells(support_matrix((bare,), read_results(planted.results)))
    assert "bare: nothing was compared in stage rtl on wide32" in empty
    assert len(empty) == len(support_matrix((bare,), read_results(planted.results))[0].compared)
