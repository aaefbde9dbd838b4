"""Vectors of functions that are looked up: each behind a convolution."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from accelsim.vectors.module import OperatorCase, formula, layers

FUNCTIONS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "sigmoid": ("sigmoid", torch.sigmoid),
    "tanh": ("tanh", torch.tanh),
    "silu": ("silu", nn.functional.silu),
    "hard_sigmoid": ("hard_sigmoid", nn.functional.hardsigmoid),
    "gelu": ("gelu", nn.functional.gelu),
    "elu": ("elu", nn.functional.elu),
    "leaky_relu": ("leakyrelu", lambda x: nn.functional.leaky_relu(x, 0.1)),
    "mish": ("mish", nn.functional.mish),
    "softplus": ("softplus", nn.functional.softplus),
    "exp": ("exp", torch.exp),
    "rsqrt": ("rsqrt", lambda x: torch.rsqrt(torch.sigmoid(x))),
    "user_function": ("lookup", lambda x: x * torch.sin(x) + 0.5),
}
"""Vector → the layer's name in a program, and the function."""


def _case(layer: str, name: str, function: Callable[[Tensor], Tensor]) -> OperatorCase:
    return formula(
        layer,
        f"{name.replace('_', ' ')} between two convolutions",
        ((1, 5, 5, 6),),
        lambda parts, x: parts[1](function(parts[0](x))),
        lambda: nn.Conv2d(5, 11, 1),
        lambda: nn.Conv2d(11, 3, 1),
    )


CASES = {name: _case(layer, name, function) for name, (layer, function) in FUNCTIONS.items()} | {
    "hard_swish": layers(
        "hard_swish",
        "hard-swish behind a convolution",
        (1, 13, 5, 6),
        lambda: nn.Conv2d(13, 13, 1),
        lambda: nn.Hardswish(),
    ),
}
