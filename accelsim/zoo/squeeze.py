"""Fire modules: `zoo:digits-squeezenet` and `zoo:digits-squeezenext`.

What comes in: nothing. What goes out: untrained networks. Blocks after SqueezeNet (Iandola et al.
2016) and SqueezeNext (Gholami et al. 2018).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from accelsim.zoo.blocks import Classifier, ConvBlock


class Fire(nn.Module):
    """Squeeze by 1×1 kernels, then expand by 1×1 and 3×3 kernels side by side.

    (n, i, h, w) → (n, 2 · expanded, h, w).
    """

    def __init__(self, in_channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = ConvBlock(in_channels, squeezed)
        self.expand1 = ConvBlock(squeezed, expanded)
        self.expand3 = ConvBlock(squeezed, expanded, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.squeeze(x)
        return torch.cat([self.expand1(y), self.expand3(y)], dim=1)


class SqueezeNextBlock(nn.Module):
    """Two narrowing 1×1 kernels, a 3×1 and a 1×3 kernel, a widening one, and a shortcut."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        half, quarter = max(1, in_channels // 2), max(1, in_channels // 4)
        self.reduce1 = ConvBlock(in_channels, half, stride=stride)
        self.reduce2 = ConvBlock(half, quarter)
        self.columns = ConvBlock(quarter, half, (3, 1))
        self.rows = ConvBlock(half, half, (1, 3))
        self.expand = ConvBlock(half, out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = ConvBlock(in_channels, out_channels, stride=stride, act=None)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.expand(self.rows(self.columns(self.reduce2(self.reduce1(x)))))
        total: Tensor = self.relu(y + self.shortcut(x))
        return total


def squeezenet() -> nn.Module:
    """A stem, two fire modules around a max pool, and a 1×1 convolution of class scores."""
    return nn.Sequential(
        ConvBlock(1, 24, 3),
        nn.MaxPool2d(3, 2, padding=1),
        Fire(24, 8, 16),
        Fire(32, 12, 20),
        nn.MaxPool2d(3, 2, padding=1),
        Fire(40, 12, 24),
        Classifier(48),
    )


def squeezenext() -> nn.Module:
    """A stem and three blocks."""
    return nn.Sequential(
        ConvBlock(1, 24, 3, stride=2),
        SqueezeNextBlock(24, 24),
        SqueezeNextBlock(24, 40, stride=2),
        SqueezeNextBlock(40, 40),
        Classifier(40),
    )
