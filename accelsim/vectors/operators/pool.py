"""Vectors of pooling behind a convolution."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from accelsim.vectors.module import layers

INSIDE = layers(
    "avg_pool2d",
    "3×3 at stride 2, padding not counted",
    (1, 6, 7, 7),
    lambda: nn.Conv2d(6, 9, 1),
    lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
)
CASES = {
    "max_pool": layers(
        "max_pool2d",
        "3×3 at stride 2, padded",
        (1, 10, 9, 7),
        lambda: nn.Conv2d(10, 10, 1),
        lambda: nn.MaxPool2d(3, 2, 1),
    ),
    "avg_pool": layers(
        "avg_pool2d",
        "global average",
        (1, 19, 5, 7),
        lambda: nn.Conv2d(19, 19, 1),
        lambda: nn.AdaptiveAvgPool2d(1),
    ),
    "avg_pool_inside": replace(INSIDE, torch_defect="its kernel counts padding though told not to"),
}
