"""Shares of samples whose class is among the highest scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accelsim.errors import InputError


def top_k(count: int) -> Callable[[Any, np.ndarray], dict[str, float]]:
    """A metric: the share of samples whose label is among the `count` highest scores."""

    def measure(outputs: Any, labels: np.ndarray) -> dict[str, float]:
        if isinstance(outputs, tuple):
            raise InputError(
                f"top{count} is for networks of one output, and this one has {len(outputs)}; give "
                "--metric FILE.py:FUNCTION"
            )
        return {f"top{count}": top_k_share(outputs, labels, count)}

    return measure


def top_k_share(scores: np.ndarray, labels: np.ndarray, count: int) -> float:
    """The share, from scores (samples, classes) or more extents, of which all but one are 1.

    Of equal scores the lower class number ranks first. Raises InputError for scores of another
    shape, and for labels that do not fit to them.
    """
    if len(scores) == 0:
        raise InputError(f"top{count} has no samples to measure on")
    if scores.ndim < 2 or max(scores.shape[1:]) != math.prod(scores.shape[1:]):
        raise InputError(
            f"top{count} needs one score a class of each sample; outputs have the shape "
            f"{scores.shape}; give --metric FILE.py:FUNCTION"
        )
    flat = scores.reshape(len(scores), -1)
    if labels.shape != (len(flat),) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"top{count} needs one class number for each of {len(flat)} samples; labels are "
            f"{labels.dtype} of shape {labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= flat.shape[1]:
        raise InputError(
            f"labels go from {labels.min()} to {labels.max()}, and the network has "
            f"{flat.shape[1]} classes"
        )
    own = flat[np.arange(len(flat)), labels][:, None]
    before = np.arange(flat.shape[1])[None, :] < labels[:, None]
    rank = ((flat > own) | ((flat == own) & before)).sum(1)
    return float((rank < count).mean())
