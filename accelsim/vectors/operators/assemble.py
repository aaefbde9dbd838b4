"""Vectors of elements in other places: concatenated, padded, moved between space and channels."""

from __future__ import annotations

import torch
from torch import nn

from accelsim.vectors.module import formula

SHAPE = ((1, 6, 6, 5),)


def _twelve() -> nn.Module:
    return nn.Conv2d(6, 12, 1)


def _seven() -> nn.Module:
    return nn.Conv2d(6, 7, 1)


CASES = {
    "concat": formula(
        "concat",
        "two maps with scales of their own along channels",
        SHAPE,
        lambda m, x: torch.cat((m[0](x), m[1](x)), 1),
        *(_twelve, _seven),
    ),
    "pad": formula(
        "pad",
        "uneven padding with zeros",
        SHAPE,
        lambda m, x: m[1](nn.functional.pad(m[0](x), (1, 2, 0, 1))),
        *(_seven, lambda: nn.Conv2d(7, 3, 1)),
    ),
    "pixel_shuffle": formula(
        "pixel_shuffle",
        "channels become pixels",
        SHAPE,
        lambda m, x: m[1](m[0](x)),
        *(_twelve, lambda: nn.PixelShuffle(2)),
    ),
    "resize_nearest": formula(
        "resize_nearest",
        "every pixel twice in both directions",
        SHAPE,
        lambda m, x: m[2](m[1](m[0](x))),
        *(_seven, lambda: nn.Upsample(scale_factor=2), lambda: nn.Conv2d(7, 3, 1)),
    ),
}
