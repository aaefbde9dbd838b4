"""ResNet-18 at 224×224 in plain PyTorch, with random weights: 1.81 billion products.

accelsim verify examples/resnet18.py:make --config base16
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """relu(bn(conv(relu(bn(conv(x))))) + shortcut(x)), 3×3 kernels."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.relu1(self.bn1(self.conv1(x)))
        result: Tensor = self.relu2(self.bn2(self.conv2(hidden)) + self.shortcut(x))
        return result


class ResNet18(nn.Module):
    """(n, 3, 224, 224) → (n, 1000)."""

    STAGES = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        blocks, channels = [], 64
        for out_channels, stride in self.STAGES:
            blocks.append(Block(channels, out_channels, stride))
            channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        result: Tensor = self.fc(torch.flatten(self.avgpool(self.blocks(x)), 1))
        return result


def make() -> tuple[nn.Module, Tensor]:
    """The network and one random image, from a fixed seed."""
    torch.manual_seed(0)
    return ResNet18().eval(), torch.randn(1, 3, 224, 224)
