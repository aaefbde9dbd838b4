"""Reshapes without arithmetic: an activation whose shape changes, perhaps its scale too.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.reference.flow import UNLIMITED, Claim, Island, Source
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.rescale import move_kernel


@dataclass(frozen=True, slots=True)
class Reshape:
    """Elements in the same order."""


def recognise(island: Island) -> Claim | None:
    """A source that was reshaped, and is not clamped."""
    source, limits = island.ending.value, island.ending.limits
    if not isinstance(source, Source) or limits != UNLIMITED:
        return None
    if source.tensor.shape == source.shape == island.output.shape:
        return None
    return Claim("reshape", Reshape(), (source,), source.shape)


OPERATOR = Operator(
    "reshape",
    recognise,
    move_kernel,
    TorchKernel(lambda site: site.same_levels, lambda site, operands: operands[0]),
    tensor_ranks=frozenset(range(1, 9)),
)
