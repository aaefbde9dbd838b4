"""What a vector is made of: a small float module, quantized when the vectors are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """A module and the shapes of its inputs, NCHW. `operator` is the layer's name in a program.

    `torch_defect` says why PyTorch's int8 kernel of this operator is no golden. A `quantized`
    module has its quantizes already. Inputs are normal, `sizes` times a deviation of about 1.
    """

    operator: str
    description: str
    shapes: tuple[tuple[int, ...], ...]
    make: Callable[[], nn.Module]
    torch_defect: str = ""
    quantized: bool = False
    sizes: tuple[float, ...] = ()  # one an input; none: all are 1


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


class Formula(nn.Module):
    """`function(modules, x)`, or of `(modules, x, y)`."""

    def __init__(self, function: Callable[..., Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(modules)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.parts, x)


class PairFormula(Formula):
    """The same of two inputs."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return self.function(self.parts, x, y)


def formula(
    operator: str,
    description: str,
    shapes: tuple[tuple[int, ...], ...],
    function: Callable[..., Tensor],
    *modules: Callable[[], nn.Module],
) -> OperatorCase:
    """A function of modules and one or two inputs, made when the vector is."""
    kind = Formula if len(shapes) == 1 else PairFormula
    return OperatorCase(
        operator, description, shapes, lambda: kind(function, *(make() for make in modules))
    )
