"""Vectors of softmax of what a mask keeps, in a network that comes quantized."""

from __future__ import annotations

import torch
from torch import Tensor

from accelsim.vectors.module import OperatorCase, PairFormula
from accelsim.vectors.operators.rescaled import Levels, quantized

SCORES: Levels = (0.15, -7)
MASK: Levels = (2.0**70, 127)  # positive numbers become 0 and keep a score, any step below hides it
SHARES: Levels = (1 / 256, -128)


def _shares(_: object, x: Tensor, y: Tensor) -> Tensor:
    sums = quantized(x, *SCORES) + quantized(y, *MASK)
    return quantized(torch.softmax(sums, -1), *SHARES)


CASES = {
    "masked_softmax": OperatorCase(
        "masked_softmax",
        "rows of a sequence, each with a mask of its own",
        ((1, 6, 11), (1, 6, 11)),
        lambda: PairFormula(_shares),
        quantized=True,
        sizes=(1.0, 2.0**70),
    ),
    "masked_softmax_one_mask": OperatorCase(
        "masked_softmax",
        "rows of a sequence that share a mask, longer than the lanes of a block",
        ((1, 5, 37), (1, 1, 37)),
        lambda: PairFormula(_shares),
        quantized=True,
        sizes=(1.0, 2.0**70),
    ),
}
