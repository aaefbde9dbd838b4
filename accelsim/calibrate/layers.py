"""What the report says of each layer: its scales, and how much of its signal is left.

What comes in: a quantized network. What goes out: a row for each layer. It must not know how the
scales were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelsim.calibrate.switches import SwitchedLayer
from accelsim.calibrate.traps import weight_scales


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """A layer of the quantized network; real numbers, in the units of its tensor."""

    name: str
    members: tuple[str, ...]  # empty for a model input
    sqnr_db: float | None  # of its output, all layers quantized
    scale: float | None  # of its output; None for what follows the last quantize
    zero_point: int | None
    low: float | None  # least and greatest number that its output can hold
    high: float | None
    weight_scales: tuple[float, float] | None  # smallest and largest
    in_float: bool  # whether it was left so


def layer_facts(
    layers: Sequence[SwitchedLayer], noise: Mapping[str, float], kept: Sequence[str]
) -> tuple[LayerFacts, ...]:
    """A row for each layer, in the network's order.

    Args:
        layers: of the quantized network.
        noise: decibels by layer name.
        kept: names of the layers that stay in float.
    """
    return tuple(_facts(layer, noise.get(layer.name), layer.name in kept) for layer in layers)


def _facts(layer: SwitchedLayer, decibels: float | None, in_float: bool) -> LayerFacts:
    scale = zero = low = high = None
    if layer.quantize is not None:
        scale = float(layer.quantize.args[1])  # type: ignore[arg-type]
        zero, least, most = (int(one) for one in layer.quantize.args[2:5])  # type: ignore[arg-type]
        low, high = scale * (least - zero), scale * (most - zero)
    scales = [one for module in layer.modules for one in weight_scales(module)]
    return LayerFacts(
        layer.name,
        layer.members,
        decibels,
        scale,
        zero,
        low,
        high,
        (min(scales), max(scales)) if scales else None,
        in_float,
    )
