"""Vectors of clamps that are layers of their own, and of changes of scale."""

from __future__ import annotations

import torch
from torch import nn

from accelsim.vectors.module import formula

CASES = {
    "clamp": formula(
        "clip",
        "a clamp of the input of two layers",
        ((1, 7, 6, 5),),
        lambda m, x: m[0](torch.clamp(x, -0.5, 0.9)) + m[1](x),
        *(lambda: nn.Conv2d(7, 4, 1), lambda: nn.Conv2d(7, 4, 1)),
    ),
}
