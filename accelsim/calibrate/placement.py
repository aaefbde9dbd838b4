"""Leaving the most sensitive layers in float until the loss is within a limit.

What comes in: sensitivities, and a way to measure the loss with some layers in float. What goes
out: the layers that stay. It must not know how a network is quantized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accelsim.calibrate.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True)
class PlacementStep:
    """A loss that was measured with some layers in float."""

    kept: tuple[str, ...]
    loss: float


@dataclass(frozen=True, slots=True)
class Placement:
    """Layers that stay in float, and whether the loss is within the limit with them."""

    kept: tuple[str, ...]
    reached: bool
    steps: tuple[PlacementStep, ...]


def place(
    rows: Sequence[Sensitivity], limit: float, loss_with: Callable[[tuple[str, ...]], float]
) -> Placement:
    """The fewest of the most sensitive layers that bring the loss to the limit, by bisection.

    Bisection takes the loss to fall as layers are added; the loss of what is returned is measured
    in any case. Where not even all layers with weights in float suffice, none are kept.
    """
    ranked = [row.name for row in sorted(rows, key=lambda row: row.rank) if row.weighty]
    steps: list[PlacementStep] = []

    def within(count: int) -> bool:
        kept = tuple(ranked[:count])
        steps.append(PlacementStep(kept, loss_with(kept)))
        return steps[-1].loss <= limit + 1e-12

    if within(0):
        return Placement((), True, tuple(steps))
    if not ranked or not within(len(ranked)):
        return Placement((), False, tuple(steps))
    low, high = 0, len(ranked)  # too few, enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
    return Placement(tuple(ranked[:high]), True, tuple(steps))
