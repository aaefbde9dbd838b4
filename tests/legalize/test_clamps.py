"""A clip folds into whatever has limits, and into nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accelsim.artifacts import Add, Lookup, PRelu, Requantize, Transpose
from accelsim.artifacts.compute import Binary, MatMul, Pool2d
from accelsim.legalize.clamps import narrowed

ONE = np.float32(1)
END = Requantize(np.ones(1, np.float32), 3, -100, 90)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((-20, 30), (-20, 30)), ((-120, 95), (-100, 90)), ((100, 120), (100, 100))],
)
def test_limits_of_a_requantization_narrow(
    limits: tuple[int, int], expected: tuple[int, int]
) -> None:
    for compute in (MatMul(0, 0, False, END), Binary("multiply", 1, 2, END)):
        changed = narrowed(compute, *limits)
        assert changed is not None
        ends = changed.requantize.clamp_min, changed.requantize.clamp_max
        assert ends == expected
        assert replace(changed, requantize=END) == compute


def test_limits_of_the_operator_itself_narrow() -> None:
    slopes = np.ones(2, np.float32)
    for compute in (
        Add(0, 0, ONE, ONE, ONE, 3, -100, 90),
        PRelu(0, ONE, slopes, ONE, 3, -100, 90),
        Pool2d("max", (2, 2), (2, 2), (0, 0, 0, 0), 0, None, -100, 90),
    ):
        changed = narrowed(compute, -20, 127)
        assert changed is not None
        assert (changed.clamp_min, changed.clamp_max) == (-20, 90)


def test_every_divisor_of_a_pool_narrows() -> None:
    counts = tuple((count, replace(END, zero_point=count)) for count in (4, 9))
    pool = Pool2d("sum", (3, 3), (1, 1), (1, 1, 1, 1), 0, END, by_count=counts)
    changed = narrowed(pool, -5, 6)
    assert changed is not None
    ends = (changed.requantize, *(end for _, end in changed.by_count))
    assert [(end.clamp_min, end.clamp_max) for end in ends] == [(-5, 6)] * 3
    assert [count for count, _ in changed.by_count] == [4, 9]


def test_operators_without_limits_absorb_nothing() -> None:
    table = np.arange(-128, 128).astype(np.int8)
    for compute in (None, Lookup(table), Transpose((0, 1, 2, 3))):
        assert narrowed(compute, 0, 1) is None
