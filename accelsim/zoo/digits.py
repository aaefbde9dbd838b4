"""Scikit-learn's handwritten digits, prepared for a network of 16x16 inputs.

What comes in: a seed. What goes out: normalised float32 images (samples, 1, 16, 16), integer labels
(samples,), split into train and test by class. It must not know the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import F32

SIDE = 16
TEST_PER_CLASS = 36
_MEAN, _STANDARD_DEVIATION = 4.9, 6.0  # of the pixels 0..16, so that inputs have both signs


@dataclass(frozen=True, slots=True)
class Digits:
    """The split data set: images (samples, 1, 16, 16) float32, labels (samples,) int64."""

    train_images: F32
    train_labels: NDArray[np.int64]
    test_images: F32
    test_labels: NDArray[np.int64]


def load_digits(seed: int) -> Digits:
    """Split the 1,797 images: 36 of each class for test, the rest for training.

    The test split is interleaved by class: any first 10·k samples are class-balanced.
    """
    from sklearn.datasets import load_digits as sklearn_digits

    bunch: Any = sklearn_digits()
    images = np.asarray(bunch.images, dtype=np.float32)
    labels = np.asarray(bunch.target, dtype=np.int64)
    prepared = ((resize_bilinear(images, SIDE) - _MEAN) / _STANDARD_DEVIATION).astype(np.float32)
    prepared = prepared[:, None]

    order = np.random.default_rng(seed).permutation(len(labels))
    by_class = [order[labels[order] == digit] for digit in range(10)]
    test = np.stack([members[:TEST_PER_CLASS] for members in by_class], axis=1).reshape(-1)
    train = np.sort(np.concatenate([members[TEST_PER_CLASS:] for members in by_class]))
    return Digits(prepared[train], labels[train], prepared[test], labels[test])


def resize_bilinear(images: F32, side: int) -> F32:
    """Resize (samples, h, w) to (samples, side, side), pixel centres at half-integers."""
    rows = _interpolation(images.shape[1], side)
    columns = _interpolation(images.shape[2], side)
    resized: F32 = np.einsum("ih,nhw,jw->nij", rows, images, columns).astype(np.float32)
    return resized


def _interpolation(source: int, target: int) -> F32:
    """The (target, source) matrix of linear interpolation; edges repeat the border pixel."""
    position = np.clip((np.arange(target) + 0.5) * source / target - 0.5, 0, source - 1)
    low = np.minimum(position.astype(np.int64), source - 2)
    fraction = position - low
    matrix = np.zeros((target, source), dtype=np.float32)
    matrix[np.arange(target), low] = 1 - fraction
    matrix[np.arange(target), low + 1] += fraction
    return matrix
