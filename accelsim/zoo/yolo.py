"""CSP and SPPF blocks: `zoo:digits-yolov5` with SiLU and `zoo:digits-yolov5-relu6`.

What comes in: the activation. What goes out: untrained networks. Blocks as in YOLOv5 (Ultralytics
2020), after CSPNet (Wang et al. 2020).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from accelsim.zoo.blocks import Activation, Classifier, ConvBlock


class Bottleneck(nn.Module):
    """x + conv3×3(conv1×1(x))."""

    def __init__(self, channels: int, act: Activation) -> None:
        super().__init__()
        self.conv1 = ConvBlock(channels, channels, act=act)
        self.conv2 = ConvBlock(channels, channels, 3, act=act)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv2(self.conv1(x))
        return x + y


class Csp(nn.Module):
    """One half of the channels through bottlenecks, the other past them, then joined."""

    def __init__(self, in_channels: int, out_channels: int, act: Activation) -> None:
        super().__init__()
        half = out_channels // 2
        self.left = ConvBlock(in_channels, half, act=act)
        self.right = ConvBlock(in_channels, half, act=act)
        self.inner = Bottleneck(half, act)
        self.join = ConvBlock(2 * half, out_channels, act=act)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.join(torch.cat([self.inner(self.left(x)), self.right(x)], dim=1))
        return y


class Sppf(nn.Module):
    """Spatial pyramid of three max pools in a row, all stages concatenated."""

    def __init__(self, in_channels: int, out_channels: int, act: Activation) -> None:
        super().__init__()
        half = in_channels // 2
        self.narrow = ConvBlock(in_channels, half, act=act)
        self.pool1 = nn.MaxPool2d(5, 1, padding=2)
        self.pool2 = nn.MaxPool2d(5, 1, padding=2)
        self.pool3 = nn.MaxPool2d(5, 1, padding=2)
        self.join = ConvBlock(4 * half, out_channels, act=act)

    def forward(self, x: Tensor) -> Tensor:
        first = self.narrow(x)
        second = self.pool1(first)
        third = self.pool2(second)
        stages = [first, second, third, self.pool3(third)]
        y: Tensor = self.join(torch.cat(stages, dim=1))
        return y


def backbone(act: Activation) -> nn.Sequential:
    """(n, 1, h, w) → (n, 48, h / 4, w / 4)."""
    return nn.Sequential(
        ConvBlock(1, 16, 3, act=act),
        ConvBlock(16, 32, 3, stride=2, act=act),
        Csp(32, 32, act),
        ConvBlock(32, 48, 3, stride=2, act=act),
        Csp(48, 48, act),
        Sppf(48, 48, act),
    )


def yolov5() -> nn.Module:
    """The backbone with SiLU, as a classifier."""
    return nn.Sequential(backbone(nn.SiLU), Classifier(48))


def yolov5_relu6() -> nn.Module:
    """The backbone with ReLU6, as a classifier."""
    return nn.Sequential(backbone(nn.ReLU6), Classifier(48))
