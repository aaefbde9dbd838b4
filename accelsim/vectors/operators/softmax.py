"""Vectors of softmax over channels."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import layers

CASES = {
    "softmax": layers(
        "softmax",
        "rows of a sequence",
        (1, 6, 15),
        lambda: nn.Linear(15, 11),
        lambda: nn.Softmax(-1),
        lambda: nn.Linear(11, 5),
    ),
}
