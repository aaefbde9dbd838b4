"""The operators that have vectors: small float modules, quantized when the vectors are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """A module and the shape of its input, NCHW."""

    operator: str
    description: str
    shape: tuple[int, ...]
    make: Callable[[], nn.Module]


class Residual(nn.Module):
    """conv(x) + x, then ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.relu(self.conv(x) + x)
        return result


class Head(nn.Module):
    """Flatten a map and classify it."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.fc = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.fc(torch.flatten(x, 1))
        return result


def _conv(*sizes: int, **options: object) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Conv2d(*sizes, **options))  # type: ignore[arg-type]


OPERATORS: Mapping[str, OperatorCase] = {
    "conv2d_3x3": OperatorCase(
        "conv2d",
        "3×3, padded, channels beside the lane counts",
        (1, 9, 7, 6),
        _conv(9, 17, 3, padding=1),
    ),
    "conv2d_relu_stride": OperatorCase(
        "conv2d",
        "5×3, stride 2×3, uneven padding, ReLU",
        (1, 16, 11, 10),
        lambda: nn.Sequential(nn.Conv2d(16, 8, (5, 3), stride=(2, 3), padding=(2, 1)), nn.ReLU()),
    ),
    "conv2d_dilated": OperatorCase(
        "conv2d", "3×3 with dilation 2", (1, 8, 9, 9), _conv(8, 12, 3, dilation=2, padding=2)
    ),
    "conv2d_first_layer": OperatorCase(
        "conv2d", "3 channels, packed by the host", (1, 3, 8, 8), _conv(3, 8, 3, padding=1)
    ),
    "depthwise_3x3": OperatorCase(
        "depthwise_conv2d",
        "3×3 depthwise with ReLU6",
        (1, 20, 7, 9),
        lambda: nn.Sequential(nn.Conv2d(20, 20, 3, padding=1, groups=20), nn.ReLU6()),
    ),
    "depthwise_stride": OperatorCase(
        "depthwise_conv2d",
        "5×5 depthwise at stride 2",
        (1, 8, 9, 9),
        _conv(8, 8, 5, stride=2, padding=2, groups=8),
    ),
    "linear": OperatorCase(
        "linear", "flattened map to classes", (1, 5, 3, 3), lambda: Head(45, 10)
    ),
    "add_relu": OperatorCase(
        "add", "residual addition with ReLU", (1, 12, 6, 5), lambda: Residual(12)
    ),
    "max_pool": OperatorCase(
        "max_pool2d",
        "3×3 at stride 2, padded",
        (1, 10, 9, 7),
        lambda: nn.Sequential(nn.Conv2d(10, 10, 1), nn.MaxPool2d(3, 2, 1)),
    ),
    "avg_pool": OperatorCase(
        "avg_pool2d",
        "global average",
        (1, 19, 5, 7),
        lambda: nn.Sequential(nn.Conv2d(19, 19, 1), nn.AdaptiveAvgPool2d(1)),
    ),
}
