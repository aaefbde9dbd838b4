"""What legalize makes of an island: an integer operator, or the reason why it stays on the host.

What comes in: nothing. What goes out: types. It must not know Relax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a tensor is quantized, in the graph's own dtype."""

    scale: np.float32
    zero_point: int
    dtype: str  # "uint8" or "int8"
    limits: tuple[int, int]  # values that the quantize can give

    @property
    def shift(self) -> int:
        """What is subtracted from a value of the graph to give the NPU's int8 value."""
        return 128 if self.dtype == "uint8" else 0

    @property
    def int8_zero_point(self) -> int:
        """The zero point in the NPU's int8 domain."""
        return self.zero_point - self.shift

    def same_levels(self, other: Quantization) -> bool:
        """Whether equal real numbers have equal int8 values in both."""
        return self.scale == other.scale and self.int8_zero_point == other.int8_zero_point


@dataclass(frozen=True, slots=True)
class IntegerOp:
    """One integer operator over quantized variables of the graph, all values int8.

    `compute` is None where the operator only renames: its NHWC data are the same bytes. A layout
    names the axis n, h, w or c of each of a tensor's axes, see `legalize.layout`.
    """

    op: str  # a name of `Operator.ops`: "conv2d", "add", …
    name: str
    layers: tuple[str, ...]  # names of the QDQ layers that it computes, the last is `name`
    inputs: tuple[Any, ...]  # quantized variables
    output: Any
    shape: tuple[int, ...]  # of the output, in the graph's layout
    input_quantization: tuple[Quantization, ...]
    quantization: Quantization
    input_layouts: tuple[str, ...]
    layout: str
    compute: Any  # a `LayerOp`, a team's own dataclass, or None
    only_clamps: bool = False  # equal levels in and out: its producer may clamp in its place


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an island stays on the host."""

    reason: str
