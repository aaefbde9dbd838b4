"""Vectors of a float32 number for each channel, in networks that come quantized."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from accelsim.vectors.module import OperatorCase
from accelsim.vectors.operators.rescaled import Rescaled


class Shift(nn.Module):
    """`x + numbers`, or with `minus` `x - numbers`: one a channel of (n, c, h, w), of any sign."""

    def __init__(self, channels: int, minus: bool = False) -> None:
        super().__init__()
        self.numbers, self.minus = nn.Parameter(torch.randn(channels, 1, 1)), minus

    def forward(self, x: Tensor) -> Tensor:
        return x - self.numbers if self.minus else x + self.numbers


CASES = {
    "bias": OperatorCase(
        "bias",
        "added to an activation of 11 channels",
        ((1, 11, 4, 3),),
        lambda: Rescaled(Shift(11), (0.03, 5), (0.041, -9)),
        quantized=True,
    ),
    "bias_minus": OperatorCase(
        "bias",
        "subtracted from an activation of 19 channels",
        ((1, 19, 3, 4),),
        lambda: Rescaled(Shift(19, minus=True), (0.03, -6), (0.037, 12)),
        quantized=True,
    ),
}
