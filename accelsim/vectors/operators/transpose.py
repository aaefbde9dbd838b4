"""Vectors of axes in another order."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import formula

CASES = {
    "permute": formula(
        "permute",
        "a map as a sequence of its pixels",
        ((1, 6, 6, 5),),
        lambda m, x: m[0](x).flatten(2).permute(0, 2, 1),
        lambda: nn.Conv2d(6, 12, 1),
    ),
}
