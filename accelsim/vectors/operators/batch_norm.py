"""Vectors of batch norm behind something that does not absorb it."""

from __future__ import annotations

import torch
from torch import nn

from accelsim.vectors.module import layers


def _trained(channels: int) -> nn.BatchNorm2d:
    """Statistics and gains as after training, of both signs."""
    norm = nn.BatchNorm2d(channels)
    with torch.no_grad():
        for values in (norm.weight, norm.bias, norm.running_mean):
            assert values is not None
            values.normal_()
    return norm


CASES = {
    "batch_norm": layers(
        "batch_norm",
        "a line of its own for every channel",
        (1, 6, 8, 6),
        lambda: nn.Conv2d(6, 11, 1),
        lambda: nn.MaxPool2d(2),
        lambda: _trained(11),
        lambda: nn.Conv2d(11, 3, 1),
    ),
}
