"""Facts about scenes, detections and mean average precision, by hand-made grids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from accelsim.zoo import detector
from accelsim.zoo.classifier import Recipe
from accelsim.zoo.detection import FIELDS, decode, mean_average_precision, overlap
from accelsim.zoo.detector import Detector, loss, targets
from accelsim.zoo.digits import Digits, load_digits
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
    boxes = truth((1, 0, 0), (1, 4, 4))
    boxes[0] = 1, 0, 0, 16, 8  # both halves of it overlap by just enough
    twice = grid((1, 0, 0, 5.0), (1, 0, 1, 4.0), (1, 4, 4, 3.0))
    assert precision([twice], [boxes]) == pytest.approx(100 * (1 / 2 + 1 / 2 * 2 / 3))


@pytest.mark.parametrize(("height", "expected"), [(16, 100), (17, 0), (11, 100)])
def test_a_box_is_right_from_an_overlap_of_a_half(height: int, expected: float) -> None:
    boxes = truth((1, 0, 0))
    boxes[0] = 1, 8, 8, 8, height  # of which the detection has 8
    assert precision([grid((1, 1, 1, 5.0))], [boxes]) == pytest.approx(expected)


def test_precision_is_the_best_of_any_higher_recall() -> None:
    late = [grid((1, 2, 2, 5.0), (1, 0, 0, 4.0), (1, 4, 4, 3.0))]  # precisions 0, 1/2, 2/3
    assert precision(late, [truth((1, 0, 0), (1, 4, 4))]) == pytest.approx(100 * 2 / 3)


def test_detections_of_all_scenes_are_ranked_together() -> None:
    scenes = [grid((1, 2, 2, 3.0)), grid((1, 0, 0, 5.0))]
    assert precision(scenes, [truth((2, 5, 5)), truth((1, 0, 0))]) == pytest.approx(50)


def test_the_mean_is_over_the_classes_that_occur() -> None:
    boxes = [truth((0, 0, 0), (9, 3, 3), (4, 5, 5))]
    assert precision([grid((0, 0, 0, 5.0), (3, 2, 2, 5.0))], boxes) == pytest.approx(100 / 3)


def test_a_score_is_presence_times_the_share_of_the_class() -> None:
    values = grid((7, 2, 3, np.log(0.3 / 0.7)))
    values[5 + 2, 2, 3] = 20.0  # two classes alike, eight that cannot be
    found = decode(values)
    assert found.classes.tolist() == [2, 7] and np.allclose(found.scores, 0.15, atol=1e-6)


@pytest.mark.parametrize(("presence", "count"), [(0.06, 1), (0.04, 0)])
def test_what_is_hardly_there_is_no_detection(presence: float, count: int) -> None:
    assert len(decode(grid((7, 2, 3, np.log(presence / (1 - presence))))).scores) == count


def test_places_and_sizes_are_by_axis() -> None:
    values = grid((7, 2, 3, 9.0))
    values[1:5, 2, 3] = np.log(3), -np.log(3), np.log(2), np.log(3)
    assert np.allclose(decode(values).boxes, [[30 - 8, 18 - 12, 16, 24]])


def test_targets_are_by_axis() -> None:
    boxes = truth((7, 0, 0))
    boxes[0] = 7, 9, 20, 16, 8
    wanted = targets(boxes[None])[0]
    assert np.argwhere(wanted[0]).tolist() == [[3, 2]]  # the centre is 17, 24
    assert np.allclose(wanted[:, 3, 2], [1, 1 / 8, 0, np.log(2), 0, 7])


def test_a_loss_is_of_presence_everywhere_and_of_the_rest_where_a_digit_is() -> None:
    rng = np.random.default_rng(4)
    given = rng.normal(size=(2, FIELDS, 6, 6))
    wanted = targets(np.stack([truth((7, 0, 0), (2, 3, 4)), truth((0, 5, 1))]))
    chance = 1 / (1 + np.exp(-given[:, 0]))
    presence = -np.where(wanted[:, 0] > 0, np.log(chance), np.log(1 - chance)).mean()
    cells = [(0, 0, 0), (0, 3, 4), (1, 5, 1)]
    chosen = np.array([given[n, :, y, x] for n, y, x in cells])
    truths = np.array([wanted[n, :, y, x] for n, y, x in cells])
    place = ((1 / (1 + np.exp(-chosen[:, 1:3])) - truths[:, 1:3]) ** 2).mean()
    size = ((chosen[:, 3:5] - truths[:, 3:5]) ** 2).mean()
    shares = np.exp(chosen[:, 5:]) / np.exp(chosen[:, 5:]).sum(1, keepdims=True)
    kind = -np.log(shares[[0, 1, 2], [7, 2, 0]]).mean()
    found = loss(torch.from_numpy(given), torch.from_numpy(wanted).double())
    assert float(found) == pytest.approx(4 * presence + 2 * place + 2 * size + kind)


def test_a_wrong_class_is_wrong() -> None:
    assert precision([grid((3, 0, 0, 5.0))], [truth((1, 0, 0))]) == 0


def test_a_digit_of_another_class_is_none_that_was_missed() -> None:
    boxes = [truth((1, 0, 0), (3, 4, 4))]
    assert precision([grid((3, 0, 0, 5.0), (1, 4, 4, 5.0))], boxes) == 0


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


def test_scenes_show_each_digit_where_its_box_is() -> None:
    labels = np.arange(10)
    shades = np.broadcast_to((labels + 1.0)[:, None, None, None], (10, 1, 16, 16))
    images, boxes = compose(shades.astype(np.float32), labels, 20, seed=3)
    for image, found in zip(images[:, 0], boxes, strict=True):
        expected = np.ones((SIDE, SIDE))  # the darkest pixel of all
        for number, left, top, width, height in found[found[:, 0] >= 0]:
            expected[top : top + height, left : left + width] = number + 1
        np.testing.assert_allclose(image, expected, rtol=1e-6)
    again, _ = compose(shades.astype(np.float32), labels, 20, seed=3)
    assert np.array_equal(images, again)


def test_the_detector_is_judged_on_digits_that_it_was_not_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = load_digits(0)
    train, test = np.ones_like(digits.train_images), 2 * np.ones_like(digits.test_images)
    train[:, :, :8], test[:, :, :8] = 0, 0
    shaded = Digits(train, digits.train_labels, test, digits.test_labels)
    monkeypatch.setattr(detector, "load_digits", lambda seed: shaded)
    monkeypatch.setattr(detector, "trained", lambda *_: Detector())
    source = detector.build(Recipe("d", Detector, epochs=1), 0, tmp_path)
    assert source.training is not None and source.test_inputs is not None
    assert source.test_inputs.max() == 2 and source.training.inputs.max() == 1
    assert max(batch.max() for batch in source.calibration) == 1


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
