"""Vectors of ReLUs with slopes below zero."""

from __future__ import annotations

from dataclasses import replace

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
CASES = {"prelu": replace(SLOPES, torch_defect=DEFECT)}
