"""Vectors of functions that are looked up."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import layers

CASES = {
    "hard_swish": layers(
        "hard_swish",
        "hard-swish behind a convolution",
        (1, 13, 5, 6),
        lambda: nn.Conv2d(13, 13, 1),
        lambda: nn.Hardswish(),
    ),
}
