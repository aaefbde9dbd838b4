"""A slice of every operator's regression on edge8: all stages, a few cases each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accelsim.ops import OPERATORS, STAGES
from accelsim.ops.session import Selection, Session
from accelsim.spec.config import CONFIGS

CASES = ("plain", "one_row", "zero_points_high", "random0")
pytestmark = pytest.mark.rtl


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """All operators: each test compiles its own operator only."""
    found = Session(
        Selection(tuple(OPERATORS), (CONFIGS["edge8"],), random=1, stages=STAGES, cases=CASES)
    )
    yield found
    found.close()


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_equals_its_goldens_at_every_stage(session: Session, operator: str) -> None:
    items = [item for item in session.items() if item.operator == operator]
    outcomes = [(item, session.run(item)) for item in items]
    failures = [session.failure(item, one) for item, one in outcomes if one.failed]
    assert not failures, "\n".join(failures)
    assert {item.stage for item, _ in outcomes} == set(STAGES)
    assert len(outcomes) >= 3 * len(STAGES)
