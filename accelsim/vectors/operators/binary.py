"""Vectors of products, differences and extremes of two maps, one of them broadcast."""

from __future__ import annotations

import torch
from torch import nn

from accelsim.vectors.module import formula

SHAPE = ((1, 5, 6, 5),)


def _point() -> nn.Module:
    return nn.Conv2d(5, 11, 1)


def _last() -> nn.Module:
    return nn.Conv2d(11, 4, 1)


CASES = {
    "multiply": formula(
        "multiply", "product of two maps", SHAPE, lambda m, x: m[0](x) * m[1](x), _point, _point
    ),
    "multiply_gate": formula(
        "multiply",
        "a map times one number a channel",
        SHAPE,
        lambda m, x: m[0](x) * m[1](x).mean((2, 3), keepdim=True),
        *(_point, _point),
    ),
    "subtract": formula(
        "subtract",
        "difference of two maps",
        SHAPE,
        lambda m, x: m[2](m[0](x) - m[1](x)),
        *(_point, _point, _last),
    ),
    "minimum": formula(
        "minimum",
        "the lesser of two maps",
        SHAPE,
        lambda m, x: m[2](torch.minimum(m[0](x), m[1](x))),
        *(_point, _point, _last),
    ),
}
