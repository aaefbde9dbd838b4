"""From a detector's grid to boxes, and their mean average precision.

What comes in: grids (scenes, 15, rows, columns) of a detector, and true boxes as
`accelsim.zoo.scenes` gives them. What goes out: detections and the task's metric. It must not know
the network.

A cell's 15 numbers are the logit of "a digit has its centre here", logits of the centre's place in
the cell, the logarithms of width and height in cells, and ten class scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.zoo.scenes import SIDE, Boxes

CLASSES = 10
FIELDS = 5 + CLASSES
_LEAST_SCORE = 0.05
_MOST_OVERLAP = 0.45  # of two detections of one class: the better one stays
_RIGHT_OVERLAP = 0.5

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Detections:
    """Detections of one scene, best first."""

    classes: NDArray[np.int64]  # (n,)
    scores: Reals  # (n,)
    boxes: Reals  # (n, 4): left, top, width, height in pixels


def mean_average_precision(outputs: NDArray[Any], labels: Boxes) -> dict[str, float]:
    """mAP at an overlap of 0.5, in percent: the mean over classes that occur.

    Average precision is the area below the precision curve made monotone from the right, over all
    recalls, as in PASCAL VOC since 2010.

    Args:
        outputs: (scenes, 15, rows, columns).
        labels: (scenes, 4, 5).

    Returns:
        {"mAP@0.5": percent}.
    """
    found = [decode(grid) for grid in outputs]
    present = [c for c in range(CLASSES) if (labels[..., 0] == c).any()]
    precisions = [_average_precision(found, labels, c) for c in present]
    return {"mAP@0.5": 100 * float(np.mean(precisions)) if precisions else 0.0}


def decode(grid: NDArray[Any]) -> Detections:
    """Boxes of one grid (15, rows, columns), each class thinned to its best of close ones."""
    values = grid.astype(np.float64)
    rows, columns = values.shape[1:]
    y, x = np.mgrid[:rows, :columns]
    cell = SIDE / columns
    centre_x = (x + _sigmoid(values[1])) * cell
    centre_y = (y + _sigmoid(values[2])) * cell
    width, height = (np.exp(np.clip(values[n], -8, 8)) * cell for n in (3, 4))
    classes = np.exp(values[5:] - values[5:].max(0))
    scores = (_sigmoid(values[0]) * classes / classes.sum(0)).reshape(CLASSES, -1)
    boxes = np.stack([centre_x - width / 2, centre_y - height / 2, width, height], -1)
    boxes = boxes.reshape(-1, 4)
    kept = [
        (number, cell_index)
        for number in range(CLASSES)
        for cell_index in _thinned(boxes, scores[number])
    ]
    kept.sort(key=lambda one: -scores[one])
    chosen = np.array([cell_index for _, cell_index in kept], np.int64)
    return Detections(
        np.array([number for number, _ in kept], np.int64),
        np.array([scores[one] for one in kept]),
        boxes[chosen],
    )


def overlap(box: NDArray[Any], others: NDArray[Any]) -> Reals:
    """Intersection over union of one box with (n, 4) others."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[:2] + box[2:], others[:, :2] + others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    either = np.prod(box[2:]) + np.prod(others[:, 2:], axis=1) - shared
    result: Reals = shared / np.maximum(either, 1e-9)
    return result


def _sigmoid(values: Reals) -> Reals:
    result: Reals = 0.5 * (1 + np.tanh(values / 2))
    return result


def _thinned(boxes: Reals, scores: Reals) -> list[int]:
    """Non-maximum suppression within one class."""
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        if scores[index] < _LEAST_SCORE:
            break
        if not kept or (overlap(boxes[index], boxes[kept]) < _MOST_OVERLAP).all():
            kept.append(int(index))
    return kept


def _average_precision(found: list[Detections], labels: Boxes, number: int) -> float:
    """Area below precision over recall of one class."""
    candidates = [
        (score, scene, box)
        for scene, one in enumerate(found)
        for kind, score, box in zip(one.classes, one.scores, one.boxes, strict=True)
        if kind == number
    ]
    candidates.sort(key=lambda one: -one[0])
    total = int((labels[..., 0] == number).sum())
    taken = np.zeros(labels.shape[:2], bool)
    right = np.zeros(len(candidates))
    for position, (_, scene, box) in enumerate(candidates):
        close = overlap(box, labels[scene, :, 1:])
        close[(labels[scene, :, 0] != number) | taken[scene]] = 0
        best = int(np.argmax(close))
        if close[best] >= _RIGHT_OVERLAP:
            taken[scene, best] = right[position] = True
    recall = np.cumsum(right) / total
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall, prepend=0) * precision))
