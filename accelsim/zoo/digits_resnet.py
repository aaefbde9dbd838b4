"""`zoo:digits-resnet`: a small residual network for scikit-learn's digits.

What comes in: nothing. What goes out: the untrained network. It must not know how it is trained,
quantized or run.

The network is small, and still exercises what larger ones need: channel counts that are no multiple
of any lane count (20), a depthwise convolution with ReLU6, a linear bottleneck whose residual sum
keeps both signs (so that later padding pads with a zero point other than that of a ReLU), residual
sums with ReLU, strides, a padded max pool, a global average pool and a linear layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SeparableBlock(nn.Module):
    """x + pointwise(relu6(depthwise(x))): shape (n, channels, h, w) stays."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.depthwise_bn = nn.BatchNorm2d(channels)
        self.relu6 = nn.ReLU6()
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.pointwise_bn = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.relu6(self.depthwise_bn(self.depthwise(x)))
        output: Tensor = x + self.pointwise_bn(self.pointwise(hidden))
        return output


class ResidualBlock(nn.Module):
    """relu(conv2(relu(conv1(x))) + shortcut(x)): (n, i, h, w) → (n, o, h/stride, w/stride)."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.shortcut(x))


class DigitsResNet(nn.Module):
    """(n, 1, 16, 16) normalised images → (n, 10) class scores."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 20, 3, padding=1, bias=False)
        self.stem_bn = nn.BatchNorm2d(20)
        self.stem_relu = nn.ReLU()
        self.block1 = SeparableBlock(20)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        self.block2 = ResidualBlock(20, 32, stride=1)
        self.block3 = ResidualBlock(32, 48, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stem_relu(self.stem_bn(self.stem(x)))
        hidden = self.block3(self.block2(self.pool(self.block1(hidden))))
        output: Tensor = self.fc(torch.flatten(self.avgpool(hidden), 1))
        return output
