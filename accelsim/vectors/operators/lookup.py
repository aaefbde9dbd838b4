"""Vectors of functions that the NPU looks up in a table, behind a convolution."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import layers

CASES = {
    "lookup_hard_swish": layers(
        "lookup",
        "hard-swish of a map with pad lanes",
        (1, 5, 6, 7),
        lambda: nn.Conv2d(5, 11, 1),
        nn.Hardswish,
    ),
    "lookup_sigmoid": layers(
        "sigmoid",
        "sigmoid of a vector",
        (1, 24),
        lambda: nn.Linear(24, 35),
        nn.Sigmoid,
    ),
}
