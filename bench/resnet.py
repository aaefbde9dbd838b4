"""ResNet-18 for 224×224 images with random weights, as a source model to quantize."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


class Block(nn.Module):
    """relu(conv(relu(conv(x))) + shortcut(x))."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.relu(self.bn1(self.conv1(x)))
        output: Tensor = self.relu(self.bn2(self.conv2(hidden)) + self.shortcut(x))
        return output


def resnet18() -> nn.Module:
    """(n, 3, 224, 224) float32 → (n, 1000)."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for outputs, stride in STAGES:
        layers += [Block(channels, outputs, stride), Block(outputs, outputs, 1)]
        channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def source_model(seed: int) -> SourceModel:
    """Random weights, calibrated on one random image: only sizes matter here."""
    torch.manual_seed(seed)
    module = resnet18().eval()
    image = np.random.default_rng(seed).normal(0, 1, (1, 3, 224, 224)).astype(np.float32)
    return SourceModel("resnet18", module, (image,), ("x",), calibration=(image,))
