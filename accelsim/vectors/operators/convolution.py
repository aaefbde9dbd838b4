"""Vectors of convolutions and linear layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from accelsim.vectors.module import OperatorCase, layers


class Head(nn.Module):
    """Flatten a map and classify it."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.fc = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.fc(torch.flatten(x, 1))
        return result


CASES = {
    "conv2d_3x3": layers(
        "conv2d",
        "3×3, padded, channels beside the lane counts",
        (1, 9, 7, 6),
        lambda: nn.Conv2d(9, 17, 3, padding=1),
    ),
    "conv2d_relu_stride": layers(
        "conv2d",
        "5×3, stride 2×3, uneven padding, ReLU",
        (1, 16, 11, 10),
        lambda: nn.Conv2d(16, 8, (5, 3), stride=(2, 3), padding=(2, 1)),
        nn.ReLU,
    ),
    "conv2d_dilated": layers(
        "conv2d",
        "3×3 with dilation 2",
        (1, 8, 9, 9),
        lambda: nn.Conv2d(8, 12, 3, dilation=2, padding=2),
    ),
    "conv2d_first_layer": layers(
        "conv2d",
        "3 channels, packed by the host",
        (1, 3, 8, 8),
        lambda: nn.Conv2d(3, 8, 3, padding=1),
    ),
    "depthwise_3x3": layers(
        "depthwise_conv2d",
        "3×3 depthwise with ReLU6",
        (1, 20, 7, 9),
        lambda: nn.Conv2d(20, 20, 3, padding=1, groups=20),
        nn.ReLU6,
    ),
    "depthwise_stride": layers(
        "depthwise_conv2d",
        "5×5 depthwise at stride 2",
        (1, 8, 9, 9),
        lambda: nn.Conv2d(8, 8, 5, stride=2, padding=2, groups=8),
    ),
    "linear": OperatorCase(
        "linear", "flattened map to classes", ((1, 5, 3, 3),), lambda: Head(45, 10)
    ),
}
