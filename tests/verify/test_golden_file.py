"""What of a file's golden fails a run."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.verify.golden_file import GoldenCount

GOLDEN = np.asarray([[1, 2, 9, 3]], np.int8)


def counted(output: np.ndarray, golden: np.ndarray, framework: np.ndarray | None) -> GoldenCount:
    found = GoldenCount()
    found.add(output, golden, framework, 1)
    return found


@pytest.mark.parametrize(
    ("framework", "sentences"),
    [
        (GOLDEN, []),
        (GOLDEN + 1, ["x: 2 of 4 elements are not the golden's, by up to 2, and the framework"]),
        (None, ["x: 2 of 4 elements are not the golden's, by up to 2, and the framework"]),
    ],
)
def test_integers_may_differ_only_where_the_framework_gives_the_golden(
    framework: np.ndarray | None, sentences: list[str]
) -> None:
    output = GOLDEN - np.asarray([[0, 1, 2, 0]], np.int8)
    found = counted(output, GOLDEN, framework)
    assert (found.elements, found.different, found.furthest) == (4, 2, 2.0)
    assert [one.split(" does")[0] for one in found.problems("x")] == sentences


@pytest.mark.parametrize(("scale", "fails"), [(1.0, False), (1.2, False), (1.5, True), (0.1, True)])
def test_floats_keep_ten_decibels_of_their_golden(scale: float, fails: bool) -> None:
    golden = np.asarray([[0.5, -1.0, 2.0]], np.float32)
    found = counted(golden * np.float32(scale), golden, None)
    assert [("dB of the golden are left" in one) for one in found.problems("x")] == [True] * fails


def test_another_class_fails_whatever_is_left_of_the_golden() -> None:
    golden = np.asarray([[5.0, 5.01]], np.float32)
    found = counted(golden[:, ::-1], golden, golden[:, ::-1])
    assert found.problems("x") == ["x: the class of 1 is not the golden's"]


def test_a_single_number_has_no_class_and_is_compared_all_the_same() -> None:
    found = counted(np.asarray([[4]], np.int8), np.asarray([[-4]], np.int8), None)
    assert found.classes == 0 and len(found.problems("x")) == 1
