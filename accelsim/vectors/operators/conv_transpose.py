"""Vectors of transposed convolutions."""

from __future__ import annotations

from torch import nn

from accelsim.vectors.module import layers

CASES = {
    "conv_transpose": layers(
        "conv_transpose2d",
        "3×3 at stride 2, padded",
        (1, 6, 6, 5),
        lambda: nn.ConvTranspose2d(6, 9, 3, stride=2, padding=1),
    ),
}
