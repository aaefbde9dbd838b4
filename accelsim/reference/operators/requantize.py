"""A change of scale, a clamp, or both: an activation quantized again.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.reference.flow import UNLIMITED, Claim, Island, Source
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.rescale import move_kernel


@dataclass(frozen=True, slots=True)
class Move:
    """No arithmetic of its own: a clamp, or a change of scale."""


def recognise(island: Island) -> Claim | None:
    """A source with limits, or one of the output's own shape."""
    source, limits = island.ending.value, island.ending.limits
    if not isinstance(source, Source):
        return None
    if limits != UNLIMITED:
        return Claim("clip", Move(), (source,), source.shape, limits)
    if source.tensor.shape == source.shape == island.output.shape:
        return Claim("requantize", Move(), (source,), source.shape)
    return None


OPERATOR = Operator(
    "requantize",
    recognise,
    move_kernel,
    TorchKernel(lambda site: site.same_levels, lambda site, operands: operands[0]),
    tensor_ranks=frozenset(range(1, 9)),
)
