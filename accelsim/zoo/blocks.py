"""Convolutions that every block of the zoo is made of.

What comes in: channel counts and a kernel. What goes out: modules. They must not know the networks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

CLASSES = 10
Activation = Callable[[], nn.Module]


class ConvBlock(nn.Module):
    """Convolution, batch norm and, unless it is linear, an activation.

    (n, i, h, w) → (n, o, h / stride, w / stride); an odd kernel pads by half of itself.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int | tuple[int, int] = 1,
        stride: int = 1,
        groups: int = 1,
        act: Activation | None = nn.ReLU,
    ) -> None:
        super().__init__()
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (size[0] // 2, size[1] // 2)
        self.conv = nn.Conv2d(
            in_channels, out_channels, size, stride, padding, groups=groups, bias=False
        )
        self.bn = nn.BatchNorm2d(out_channels)
        if act is not None:
            self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.bn(self.conv(x))
        return self.act(y) if hasattr(self, "act") else y


class Classifier(nn.Module):
    """Global average and a linear layer: (n, channels, h, w) → (n, 10) scores."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.fc(torch.flatten(self.pool(x), 1))
        return scores
