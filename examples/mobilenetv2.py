"""MobileNetV2 at 224×224 in plain PyTorch, with random weights: 300 million products.

accelsim verify examples/mobilenetv2.py:make --config base16
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def convolution(in_channels: int, out_channels: int, kernel: int, **options: int) -> nn.Sequential:
    """Convolution, batch norm and ReLU6."""
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel, padding=kernel // 2, bias=False, **options),
        nn.BatchNorm2d(out_channels),
        nn.ReLU6(),
    )


class InvertedResidual(nn.Module):
    """Expand, depthwise, project without activation; with a shortcut where shapes allow it."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = in_channels * expansion
        layers: list[nn.Module] = []
        if expansion > 1:
            layers.append(convolution(in_channels, hidden, 1))
        layers.append(convolution(hidden, hidden, 3, stride=stride, groups=hidden))
        layers.append(nn.Conv2d(hidden, out_channels, 1, bias=False))
        layers.append(nn.BatchNorm2d(out_channels))
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.layers(x)
        return x + hidden if self.residual else hidden


class MobileNetV2(nn.Module):
    """(n, 3, 224, 224) → (n, 1000). Stages: expansion, channels, blocks, first stride."""

    STAGES = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [convolution(3, 32, 3, stride=2)]
        channels = 32
        for expansion, out_channels, blocks, first_stride in self.STAGES:
            for number in range(blocks):
                stride = first_stride if number == 0 else 1
                layers.append(InvertedResidual(channels, out_channels, stride, expansion))
                channels = out_channels
        layers.append(convolution(channels, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.avgpool(self.features(x))
        result: Tensor = self.classifier(torch.flatten(pooled, 1))
        return result


def make() -> tuple[nn.Module, Tensor]:
    """The network and one random image, from a fixed seed."""
    torch.manual_seed(0)
    return MobileNetV2().eval(), torch.randn(1, 3, 224, 224)
