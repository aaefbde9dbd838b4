"""Vectors of sums."""

from __future__ import annotations

from torch import Tensor, nn

from accelsim.vectors.module import OperatorCase


class Residual(nn.Module):
    """conv(x) + x, then ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.relu(self.conv(x) + x)
        return result


CASES = {
    "add_relu": OperatorCase(
        "add", "residual addition with ReLU", ((1, 12, 6, 5),), lambda: Residual(12)
    ),
}
