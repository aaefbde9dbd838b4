"""Facts about scenes, detections and mean average precision, by hand-made grids."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.zoo.detection import FIELDS, decode, mean_average_precision, overlap
from accelsim.zoo.detector import targets
from accelsim.zoo.digits import load_digits
from accelsim.zoo.scenes import MOST, SIDE, compose

NOTHING = -12.0  # a logit of about 6e-6


def grid(*found: tuple[int, int, int, float]) -> np.ndarray:
    """6×6 cells with digits (class, row, column, logit) of 8×8 pixels in the centres of cells."""
    values = np.zeros((FIELDS, 6, 6), np.float32)
    values[0] = NOTHING
    for number, row, column, logit in found:
        values[0, row, column] = logit
        values[5 + number, row, column] = 20.0
    return values


def truth(*boxes: tuple[int, int, int]) -> np.ndarray:
    """Digits (class, row, column) of 8×8 pixels that fill their cells."""
    found = np.full((MOST, 5), -1, np.int64)
    for slot, (number, row, column) in enumerate(boxes):
        found[slot] = number, 8 * column, 8 * row, 8, 8
    return found


def precision(grids: list[np.ndarray], boxes: list[np.ndarray]) -> float:
    return mean_average_precision(np.stack(grids), np.stack(boxes))["mAP@0.5"]


def test_a_cell_becomes_a_box_around_its_centre() -> None:
    found = decode(grid((7, 2, 3, 9.0)))
    assert found.classes.tolist() == [7]
    assert np.allclose(found.boxes, [[24, 16, 8, 8]])
    assert found.scores[0] == pytest.approx(1, abs=1e-3)


def test_detections_are_thinned_within_a_class_only() -> None:
    values = grid((4, 1, 1, 5.0), (4, 1, 2, 9.0), (5, 1, 3, 7.0))
    values[3:5] = np.log(4)  # boxes of 32 pixels, which overlap by 0.6
    found = decode(values)
    assert found.classes.tolist() == [4, 5]
    assert found.scores[0] > found.scores[1]


def test_overlap_is_intersection_over_union() -> None:
    box, others = np.array([0, 0, 4, 4]), np.array([[2, 0, 4, 4], [4, 0, 1, 1], [0, 0, 4, 4]])
    assert np.allclose(overlap(box, others), [8 / 24, 0, 1])


def test_all_found_is_100_percent_and_nothing_found_is_0() -> None:
    boxes = [truth((1, 0, 0), (2, 3, 3)), truth((1, 5, 5))]
    right = [grid((1, 0, 0, 5.0), (2, 3, 3, 4.0)), grid((1, 5, 5, 3.0))]
    assert precision(right, boxes) == pytest.approx(100)
    assert precision([grid(), grid()], boxes) == 0


def test_a_false_detection_costs_by_its_rank() -> None:
    boxes = [truth((1, 0, 0), (1, 4, 4))]
    last = [grid((1, 0, 0, 5.0), (1, 4, 4, 4.0), (1, 2, 2, 3.0))]
    between = [grid((1, 0, 0, 5.0), (1, 4, 4, 3.0), (1, 2, 2, 4.0))]
    assert precision(last, boxes) == pytest.approx(100)
    assert precision(between, boxes) == pytest.approx(100 * (1 / 2 + 1 / 2 * 2 / 3))


def test_a_second_detection_of_one_digit_is_false() -> None:
    boxes = [truth((1, 0, 0), (1, 4, 4))]
    twice = grid((1, 0, 0, 5.0), (1, 0, 1, 4.0), (1, 4, 4, 3.0))
    twice[3:5, 0, :2] = np.log(1.4)
    twice[1, 0, 0], twice[1, 0, 1] = 0.0, -1.0
    assert precision([twice], boxes) < 100


def test_a_wrong_class_is_wrong() -> None:
    assert precision([grid((3, 0, 0, 5.0))], [truth((1, 0, 0))]) == 0


def test_scenes_hold_digits_apart_and_inside() -> None:
    digits = load_digits(0)
    images, boxes = compose(digits.test_images, digits.test_labels, 40, seed=1)
    assert images.shape == (40, 1, SIDE, SIDE)
    assert {int((one[:, 0] >= 0).sum()) for one in boxes} == {1, 2, 3, 4}
    for found in boxes:
        real = found[found[:, 0] >= 0]
        assert ((real[:, 1:3] >= 0) & (real[:, 1:3] + real[:, 3:] <= SIDE)).all()
        for slot, one in enumerate(real):
            assert not overlap(one[1:], np.delete(real, slot, 0)[:, 1:]).any()


def test_targets_come_back_as_the_boxes_that_they_state() -> None:
    digits = load_digits(0)
    _, boxes = compose(digits.test_images, digits.test_labels, 20, seed=2)
    wanted = targets(boxes)
    grids = np.zeros((20, FIELDS, 6, 6), np.float32)
    grids[:, 0] = np.where(wanted[:, 0] > 0, 9.0, NOTHING)
    place = np.clip(wanted[:, 1:3], 1e-6, 1 - 1e-6)
    grids[:, 1:3] = np.log(place / (1 - place))
    grids[:, 3:5] = wanted[:, 3:5]
    for number in range(10):
        grids[:, 5 + number] = 20 * ((wanted[:, 5] == number) & (wanted[:, 0] > 0))
    assert mean_average_precision(grids, boxes)["mAP@0.5"] == pytest.approx(100)
