"""Facts about how many layers stay in float for a limit of the loss."""

from __future__ import annotations

import pytest

from accelsim.calibrate.placement import place
from accelsim.calibrate.sensitivity import Sensitivity


def _rows(losses: dict[str, float]) -> list[Sensitivity]:
    return [
        Sensitivity(name, name != "pool", 20.0, 20.0, 20.0, loss, loss)
        for name, loss in losses.items()
    ]


ROWS = _rows({"a": 0.1, "pool": 0.9, "b": 0.3, "c": 0.2, "d": 0.0})


@pytest.mark.parametrize("needed", range(5))
def test_the_fewest_of_the_most_sensitive_layers_are_kept(needed: int) -> None:
    order = ("b", "c", "a", "d")  # the pool has no weights
    seen = []

    def loss_with(kept: tuple[str, ...]) -> float:
        seen.append(kept)
        assert kept == order[: len(kept)]
        return 0.01 if len(kept) >= needed else 0.5

    found = place(ROWS, 0.01, loss_with)
    assert found.reached and found.kept == order[:needed]
    assert tuple(step.kept for step in found.steps) == tuple(seen) and len(seen) <= 5


def test_nothing_is_kept_where_everything_in_float_would_not_do() -> None:
    found = place(ROWS, 0.01, lambda kept: 0.5)
    assert not found.reached and found.kept == ()


def test_layers_of_equal_loss_are_ranked_by_their_noise() -> None:
    rows = [Sensitivity("a", True, 30.0, 30.0, 30.0), Sensitivity("b", True, 10.0, 10.0, 30.0)]
    assert place(rows, 0.0, lambda kept: 0.0 if "b" in kept else 1.0).kept == ("b",)
