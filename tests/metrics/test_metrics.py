"""Facts about task metrics, built in and the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.metrics import load_metric

SCORES = np.array([[1, 5, 3, 0, 2, 4], [9, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]], np.float32)


def test_top1_counts_the_highest_score() -> None:
    assert load_metric("top1").measure((SCORES,), np.array([1, 0, 0])) == {"top1": 2 / 3}


def test_top5_counts_the_five_highest_scores() -> None:
    assert load_metric("top5").measure((SCORES,), np.array([3, 5, 0])) == {"top5": 0.0}
    assert load_metric("top5").measure((SCORES,), np.array([0, 4, 1])) == {"top5": 1.0}


def test_of_equal_scores_the_lower_class_ranks_first() -> None:
    tied = np.zeros((2, 10), np.float32)
    assert load_metric("top1").measure((tied,), np.array([0, 1])) == {"top1": 0.5}


@pytest.mark.parametrize("shape", [(3, 6, 1, 1), (3, 1, 1, 6)])
def test_scores_may_have_extents_of_one(shape: tuple[int, ...]) -> None:
    scores = SCORES.reshape(shape)
    assert load_metric().measure((scores,), np.array([1, 0, 0])) == {"top1": 2 / 3}


def test_a_map_of_scores_is_no_classification() -> None:
    scores = np.zeros((3, 6, 2, 2), np.float32)
    with pytest.raises(InputError, match=r"one score a class.* \(3, 6, 2, 2\)"):
        load_metric().measure((scores,), np.array([1, 0, 0]))


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match="no samples"):
        load_metric().measure((SCORES[:0],), np.zeros(0, np.int64))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.array([0, 1]), "one class number for each of 3 samples"),
        (np.array([0.0, 1.0, 2.0]), "labels are float64"),
        (np.array([0, 1, 6]), "labels go from 0 to 6, and the network has 6 classes"),
        (np.array([-1, 1, 2]), "labels go from -1"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: np.ndarray, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_metric().measure((SCORES,), labels)


def test_a_network_of_two_outputs_needs_a_metric_of_its_own() -> None:
    with pytest.raises(InputError, match="has 2; give --metric"):
        load_metric().measure((SCORES, SCORES), np.array([0, 1, 2]))


OWN = """
import neighbour

def mean(outputs, labels):
    return neighbour.HALF * outputs.mean() + labels[0]

def several(outputs, labels):
    return {"recall": 0.5, "outputs": len(outputs)}

def broken(outputs, labels):
    raise KeyError("boxes\\nand more")

def leaving(outputs, labels):
    raise SystemExit(0)

def text(outputs, labels):
    return {"recall": "high"}

def nothing(outputs, labels):
    return {}

def nan(outputs, labels):
    return float("nan")

def infinite(outputs, labels):
    return float("inf")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("HALF = 0.5\n")
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def test_an_own_metric_gets_outputs_and_labels_and_may_import_its_neighbours(file: Path) -> None:
    metric = load_metric(f"{file}:mean")
    assert metric.measure((np.full((2, 3), 4.0),), np.array([1, 0])) == {"mean": 3.0}


def test_an_own_metric_may_return_several_numbers_and_gets_all_outputs(file: Path) -> None:
    numbers = load_metric(f"{file}:several").measure((SCORES, SCORES), np.array([0]))
    assert list(numbers.items()) == [("recall", 0.5), ("outputs", 2.0)]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("broken", "raised KeyError"),
        ("leaving", "raised SystemExit"),
        ("text", "returned a str for 'recall'"),
        ("nothing", "returned an empty dict"),
        ("nan", "returned nan for 'nan'"),
        ("infinite", "returned inf for 'infinite'"),
    ],
)
def test_what_an_own_metric_does_wrong_is_one_sentence(
    file: Path, function: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        load_metric(f"{file}:{function}").measure((SCORES,), np.array([0, 1, 2]))
    assert "\n" not in str(caught.value) and function in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("top3", "not one of top1, top5 and FILE.py:FUNCTION"),
        ("missing.py:f", "file missing.py does not exist"),
    ],
)
def test_a_metric_that_is_not_there_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_metric(spec)


def test_a_missing_function_names_the_file(file: Path) -> None:
    with pytest.raises(InputError, match="has no function 'other'"):
        load_metric(f"{file}:other")
