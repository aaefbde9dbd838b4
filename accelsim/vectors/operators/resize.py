"""Vectors of bilinear resizes."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import layers

CASES = {
    "resize_bilinear": layers(
        "resize_bilinear",
        "twice as many rows and columns, about pixel centres",
        (1, 6, 6, 5),
        lambda: nn.Conv2d(6, 7, 1),
        lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
        lambda: nn.Conv2d(7, 3, 1),
    ),
}
