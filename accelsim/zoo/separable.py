"""Depthwise networks: `zoo:digits-mobilenetv1`, `-mobilenetv2`, `-xception` and `-shufflenet`.

What comes in: nothing. What goes out: untrained networks. Blocks after MobileNet (Howard et al.
2017), MobileNetV2 (Sandler et al. 2018), Xception (Chollet 2017) and ShuffleNet (Zhang et al.
2018).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from accelsim.zoo.blocks import Classifier, ConvBlock


class Separable(nn.Module):
    """MobileNet's block: a depthwise 3×3 and a pointwise convolution, each with ReLU."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.depthwise = ConvBlock(in_channels, in_channels, 3, stride, groups=in_channels)
        self.pointwise = ConvBlock(in_channels, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.pointwise(self.depthwise(x))
        return y


class InvertedResidual(nn.Module):
    """MobileNetV2's block: expand, depthwise, project linearly; with a shortcut where it fits."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, factor: int) -> None:
        super().__init__()
        hidden = in_channels * factor
        self.expand = ConvBlock(in_channels, hidden, act=nn.ReLU6)
        self.depthwise = ConvBlock(hidden, hidden, 3, stride, groups=hidden, act=nn.ReLU6)
        self.project = ConvBlock(hidden, out_channels, act=None)
        self.adds = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.project(self.depthwise(self.expand(x)))
        return x + y if self.adds else y


class XceptionBlock(nn.Module):
    """Two separable convolutions without ReLU inside, a max pool, and a strided shortcut."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            ConvBlock(in_channels, in_channels, 3, groups=in_channels, act=None),
            ConvBlock(in_channels, out_channels),
        )
        self.second = nn.Sequential(
            ConvBlock(out_channels, out_channels, 3, groups=out_channels, act=None),
            ConvBlock(out_channels, out_channels, act=None),
        )
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        self.shortcut = ConvBlock(in_channels, out_channels, stride=2, act=None)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.pool(self.second(self.first(x)))
        total: Tensor = y + self.shortcut(x)
        return total


class ShuffleBlock(nn.Module):
    """ShuffleNet's unit: grouped 1×1 convolutions with their channels shuffled in between."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.narrow = ConvBlock(channels, channels // 2, groups=groups)
        self.depthwise = ConvBlock(channels // 2, channels // 2, 3, groups=channels // 2, act=None)
        self.widen = ConvBlock(channels // 2, channels, groups=groups, act=None)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.channel_shuffle(self.narrow(x), self.groups)
        return torch.relu(x + self.widen(self.depthwise(y)))


def mobilenetv1() -> nn.Module:
    """A stem and four blocks."""
    return nn.Sequential(
        ConvBlock(1, 16, 3),
        Separable(16, 32, 2),
        Separable(32, 32),
        Separable(32, 48, 2),
        Separable(48, 48),
        Classifier(48),
    )


def mobilenetv2() -> nn.Module:
    """A stem, four blocks of which two add, and a widening convolution."""
    return nn.Sequential(
        ConvBlock(1, 16, 3, act=nn.ReLU6),
        InvertedResidual(16, 20, 2, 3),
        InvertedResidual(20, 20, 1, 3),
        InvertedResidual(20, 28, 2, 3),
        InvertedResidual(28, 28, 1, 3),
        ConvBlock(28, 64, act=nn.ReLU6),
        Classifier(64),
    )


def xception() -> nn.Module:
    """A stem and two blocks."""
    return nn.Sequential(
        ConvBlock(1, 20, 3), XceptionBlock(20, 32), XceptionBlock(32, 48), Classifier(48)
    )


def shufflenet() -> nn.Module:
    """A stem and three units of 4 groups."""
    return nn.Sequential(
        ConvBlock(1, 24, 3),
        nn.MaxPool2d(3, 2, padding=1),
        ShuffleBlock(24, 4),
        ShuffleBlock(24, 4),
        ConvBlock(24, 40, 3, stride=2),
        ShuffleBlock(40, 4),
        Classifier(40),
    )
