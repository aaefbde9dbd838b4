"""Vectors of minima, and of maxima over windows of different sizes."""

from __future__ import annotations

import torch
from torch import nn

from accelsim.vectors.module import formula, layers

CASES = {
    "reduce_min": formula(
        "extremum",
        "smallest element of each row",
        ((1, 6, 7, 5),),
        lambda parts, x: parts[1](torch.amin(parts[0](x), 3, keepdim=True)),
        lambda: nn.Conv2d(6, 11, 1),
        lambda: nn.Conv2d(11, 3, 1),
    ),
    "adaptive_max_pool2d": layers(
        "extremum",
        "windows of different sizes",
        (1, 6, 7, 10),
        lambda: nn.Conv2d(6, 11, 1),
        lambda: nn.AdaptiveMaxPool2d((3, 4)),
        lambda: nn.Conv2d(11, 3, 1),
    ),
}
