"""Vectors of changes of shape alone."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import formula

CASES = {
    "unflatten": formula(
        "linear",
        "a vector as a map with channels beside the lanes, and back",
        ((1, 24),),
        lambda m, x: m[1](m[0](x).reshape(1, 5, 3, 2).relu().flatten(1)),
        *(lambda: nn.Linear(24, 30), lambda: nn.Linear(30, 7)),
    ),
}
