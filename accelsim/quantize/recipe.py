"""How a float network is quantized: observers, weight scales, and what stays in float."""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.quantize.observers import PERCENTILE


@dataclass(frozen=True, slots=True)
class Recipe:
    """Options of one post-training quantization; `accelsim verify` uses the defaults."""

    activations: str = "mse"  # one of `observers.KINDS`
    percentile: float = PERCENTILE  # of activations, where they are calibrated so
    per_channel: bool = False  # one weight scale for each output channel
    signed: bool = False  # qint8 activations instead of quint8
    keep_float: tuple[str, ...] = ()  # the user's names of layers, or of modules that hold them
