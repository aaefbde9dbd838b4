"""A slice of every operator's regression on edge8: all stages, a few cases each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accelsim.ops import STAGES, known_operators, operator_of
from accelsim.ops.session import Selection, Session
from accelsim.spec.config import CONFIGS

CASES = ("plain", "one_row", "zero_points_high", "random0")
pytestmark = pytest.mark.rtl


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """All operators: each test compiles its own operator only."""
    found = Session(
        Selection(
            tuple(known_operators()), (CONFIGS["edge8"],), random=1, stages=STAGES, cases=CASES
        )
    )
    yield found
    found.close()


@pytest.mark.parametrize("operator", known_operators())
def test_operator_equals_its_goldens_at_every_stage(session: Session, operator: str) -> None:
    items = [item for item in session.items() if item.operator == operator]
    outcomes = [(item, session.run(item)) for item in items]
    failures = [session.failure(item, one) for item, one in outcomes if one.failed]
    assert not failures, "\n".join(failures)
    stages = operator_of(operator).stages
    assert {item.stage for item, _ in outcomes} == set(stages)
    assert len(outcomes) >= 3 * len(stages)
