"""Weights beyond a byte, as a sum of weight tensors each of which has a pass.

What comes in: whole weights of a depthwise convolution, not negative. What goes out: int8 weights
with WEIGHT_ZERO_POINT, a pass each, that sum to them. It must not know operators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import I32
from accelsim.schedule.build import Unit
from accelsim.schedule.constant_weights import ConstantWeights
from accelsim.schedule.matrix import MatrixJob, Pass
from accelsim.schedule.view import Box

WEIGHT_ZERO_POINT = -128
_LARGEST = 127 - WEIGHT_ZERO_POINT


@dataclass(frozen=True, slots=True)
class SummedWeights:
    """The weights of each summand of a job."""

    summands: tuple[ConstantWeights, ...]

    def load(self, job: MatrixJob, unit: Unit, tile: int, p: Pass, out: Box) -> dict[str, int]:
        """The load of one summand's weights."""
        return self.summands[p.summand].load(job, unit, tile, p, out)


def summed(weight: I32, channels: int) -> SummedWeights:
    """(kernel_h, kernel_w) weights, the same in every channel."""
    rest = weight.copy()
    summands: list[ConstantWeights] = []
    while not summands or rest.any():
        part = np.minimum(rest, _LARGEST)
        rest = rest - part
        stored = (part + WEIGHT_ZERO_POINT).astype(np.int8)
        shape = (channels, *weight.shape, 1)
        summands.append(ConstantWeights(np.broadcast_to(stored[None, ..., None], shape)))
    return SummedWeights(tuple(summands))
