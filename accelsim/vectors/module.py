"""What a vector is made of: a small float module, quantized when the vectors are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """A module and the shapes of its inputs, NCHW. `operator` is the layer's name in a program."""

    operator: str
    description: str
    shapes: tuple[tuple[int, ...], ...]
    make: Callable[[], nn.Module]


def layers(
    operator: str,
    description: str,
    shape: tuple[int, ...],
    *modules: Callable[[], nn.Module],
) -> OperatorCase:
    """Modules of one input, one behind the other, made when the vector is."""
    return OperatorCase(
        operator, description, (shape,), lambda: nn.Sequential(*(make() for make in modules))
    )
