"""Comparisons are exact, and one that compared nothing is no comparison."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.artifacts import Record
from accelsim.compare import compare_tensors, first_diverging_record

AS = {"backend": "sim", "source": "integer", "mode": "isolated", "gate": True}
SHAPE = (2, 3, 4, 5)


def values(seed):
    return np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8)


def test_equal_tensors_are_equal_in_every_element():
    found = compare_tensors(values(1), values(1), **AS)
    assert (found.status, found.elements, found.mismatches) == ("equal", 120, 0)
    assert found.first is None


def test_the_first_wrong_element_is_given_with_both_values():
    golden, actual = values(1), values(1)
    golden[1, 0, 2, 3], actual[1, 0, 2, 3] = 127, -128
    actual[1, 2, 3, 4] ^= 1
    found = compare_tensors(actual, golden, **AS)
    assert (found.status, found.mismatches, found.max_abs_diff) == ("different", 2, 255)
    first = found.first
    assert (first.index, first.expected, first.actual) == ((1, 0, 2, 3), 127, -128)


@pytest.mark.parametrize("golden", [values(1)[:1], np.zeros((0, 3, 4, 5), np.int8)])
def test_a_golden_of_another_shape_compares_nothing(golden):
    found = compare_tensors(values(1)[: len(golden) or 0], values(1), **AS)
    assert (found.status, found.elements) == ("missing", 0) and found.cause


def record(index, digest):
    return Record(0, index, 10 * index, 10 * index + 5, digest)


def test_the_lowest_instruction_with_another_digest_diverges_first():
    one = [record(0, 7), record(1, 8), record(2, 9)]
    assert first_diverging_record(one, [record(2, 1), record(1, 5), record(0, 7)]) == 1
    assert first_diverging_record(one, one[:2]) == 2  # only one side retired it
    assert (
        first_diverging_record(one, [Record(0, i, 0, 99, d) for i, d in enumerate((7, 8, 9))])
        is None
    )
