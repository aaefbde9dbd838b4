"""Vectors of ReLUs with slopes of their own below zero."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from accelsim.vectors.module import layers

DEFECT = "its kernel applies the slope to positive values where the scale changes"
SLOPES = layers(
    "prelu",
    "a slope for every channel",
    (1, 6, 7, 5),
    lambda: nn.Conv2d(6, 11, 1),
    lambda: nn.PReLU(11),
    lambda: nn.Conv2d(11, 3, 1),
)


def _slopes() -> nn.PReLU:
    """Negative ones, none, and positive ones."""
    made = nn.PReLU(11)
    with torch.no_grad():
        made.weight.copy_(torch.linspace(-0.6, 0.4, 11))
    return made


SIGNED = layers(
    "prelu",
    "slopes from -0.6 to 0.4 and one of 0",
    (1, 6, 7, 5),
    lambda: nn.Conv2d(6, 11, 1),
    _slopes,
    lambda: nn.Conv2d(11, 3, 1),
)
CASES = {
    "prelu": replace(SLOPES, torch_defect=DEFECT),
    "prelu_signed": replace(SIGNED, torch_defect=DEFECT),
}
