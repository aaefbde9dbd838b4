"""Where the range of an activation ends: percentiles of what was seen, or the least divergence.

What comes in: activations, batch by batch. What goes out: PyTorch observers, which keep a histogram
and choose a scale and a zero point from it. They must not know which layer they watch.

`minmax` takes all that was seen, `mse` (as PyTorch's HistogramObserver) the range of least squared
error. `percentile` cuts the same share of values off both ends, and `entropy` the tails without
which 256 levels resemble the distribution most (least Kullback-Leibler divergence, the ends of the
histogram taken into its last levels).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.ao.quantization.observer import HistogramObserver, MinMaxObserver

from accelsim.errors import InputError

KINDS = ("minmax", "percentile", "mse", "entropy")
PERCENTILE = 99.99
_LEVELS = 256
_CANDIDATES = 48  # ends of the range that the search for entropy tries on each side
_STEP = 1e-5  # share of what was seen by which PyTorch moves an end of the range

Counts = NDArray[np.float64]


def activation_observer(
    kind: str, percentile: float = PERCENTILE, dtype: torch.dtype = torch.quint8
) -> Any:
    """A maker of observers of one kind of `KINDS`, for activations with one scale.

    Raises InputError for another kind, or a percentile outside of (50, 100].
    """
    if not 50 < percentile <= 100:
        raise InputError(f"percentile {percentile:g} is out of range; use more than 50, up to 100")
    makers: dict[str, Any] = {
        "minmax": MinMaxObserver.with_args(reduce_range=False),
        "percentile": PercentileObserver.with_args(percentile=percentile),
        "mse": SquaredErrorObserver.with_args(reduce_range=False),
        "histogram": SquaredErrorObserver.with_args(reduce_range=False),
        "entropy": EntropyObserver.with_args(),
    }
    if kind not in makers:
        raise InputError(f"observer '{kind}' is unknown; use one of {', '.join(KINDS)}")
    return makers[kind].with_args(dtype=dtype)


class SquaredErrorObserver(HistogramObserver):
    """PyTorch's range, many times faster: it compares numbers, and not tensors of one element."""

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        below: list[float] = torch.cumsum(self.histogram, 0).tolist()
        total = self.histogram.sum().item()
        first, last = 0, self.bins - 1
        low, high, least = 0.0, 1.0, float("inf")
        while low < high:
            # As a tensor meets a number: in float32.
            left = bisect_left(below, float(np.float32((low + _STEP) * total)), first, last)
            right = bisect_right(below, float(np.float32((high - _STEP) * total)), first, last + 1)
            right = max(right - 1, first)
            if left - first > last - right:
                low, ends = low + _STEP, (left, last)
            else:
                high, ends = high - _STEP, (first, right)
            if ends == (first, last):
                continue
            error = self._compute_quantization_error(*ends)
            if error > least:
                break
            least, (first, last) = error, ends
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)


class PercentileObserver(HistogramObserver):
    """The range between two percentiles, `percentile` and 100 minus it."""

    def __init__(self, percentile: float = PERCENTILE, **options: Any) -> None:
        super().__init__(**options)
        self.percentile = percentile

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        cut = (100 - self.percentile) / 100
        counts = self.histogram.double().numpy()
        below = np.concatenate([[0.0], np.cumsum(counts)]) / max(counts.sum(), 1e-30)
        edges = np.linspace(float(self.min_val), float(self.max_val), len(counts) + 1)
        ends = np.interp([cut, 1 - cut], below, edges)
        if cut == 0:
            ends = edges[[0, -1]]
        return _tensors(self, *ends)


class EntropyObserver(HistogramObserver):
    """The range whose 256 levels diverge least from what was seen."""

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        counts = self.histogram.double().numpy()
        low, high = float(self.min_val), float(self.max_val)
        if not low < high or counts.sum() == 0:
            return self.min_val, self.max_val
        first, last = least_divergence(counts, zero=-low / (high - low) * len(counts))
        width = (high - low) / len(counts)
        return _tensors(self, low + width * first, low + width * last)


def least_divergence(counts: Counts, zero: float) -> tuple[int, int]:
    """Bins [first, last) that stay, of a histogram.

    Args:
        counts: of each bin.
        zero: position of the value 0 in bins; the range keeps it, so only what lies beyond it on
            each side is cut, first above, then below.
    """
    middle = int(np.clip(round(zero), 0, len(counts)))
    first, last = 0, len(counts)
    if 0 <= zero < len(counts) + 1:  # zero has a level of its own, and costs nothing
        counts = counts.copy()
        counts[min(int(zero), len(counts) - 1)] = 0
    lasts = _ends(middle, len(counts))
    last = min(lasts, key=lambda end: (divergence(counts, first, end), -end))
    firsts = [middle - (end - middle) for end in _ends(middle, 2 * middle)]
    first = min(firsts, key=lambda start: (divergence(counts, start, last), start))
    return first, last


def divergence(counts: Counts, first: int, last: int) -> float:
    """Kullback-Leibler divergence of 256 levels over bins [first, last) from the histogram.

    What lies outside counts for the bins at the ends, as clamping puts it there; a level spreads
    what it holds evenly over those of its bins that are not empty.
    """
    inside = counts[first:last].copy()
    bins = len(inside)
    if bins <= 1 or counts.sum() == 0:
        return float("inf")
    held = inside.copy()  # what the levels are made from: the clipped tails are no part of it
    inside[0] += counts[:first].sum()
    inside[-1] += counts[last:].sum()
    level = np.arange(bins) * min(_LEVELS, bins) // bins
    mass = np.bincount(level, held)
    used = np.bincount(level, inside > 0)
    spread = np.where(inside > 0, (mass / np.maximum(used, 1))[level], 0.0)
    if spread.sum() == 0:
        return float("inf")
    wanted, given = inside / inside.sum(), spread / spread.sum()
    both = wanted > 0
    floor = 1e-12  # a level that lost all of its mass costs much, and not everything
    return float((wanted[both] * np.log(wanted[both] / np.maximum(given[both], floor))).sum())


def _ends(start: int, stop: int) -> list[int]:
    """Candidates for an end of the range, from a sixteenth of what lies beyond zero to all."""
    length = stop - start
    if length <= 0:
        return [stop]
    shares = np.linspace(1 / 16, 1, _CANDIDATES)
    return sorted({max(start + 1, start + round(length * share)) for share in shares})


def _tensors(observer: Any, low: float, high: float) -> tuple[torch.Tensor, torch.Tensor]:
    like = observer.min_val
    return like.new_tensor(low), like.new_tensor(high)
