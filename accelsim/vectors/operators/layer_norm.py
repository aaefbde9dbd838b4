"""Vectors of layer normalization over channels."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import layers

CASES = {
    "layer_norm": layers(
        "layer_norm",
        "rows of a sequence",
        (1, 6, 15),
        lambda: nn.Linear(15, 11),
        lambda: nn.LayerNorm(11),
        lambda: nn.Linear(11, 5),
    ),
}
