"""What legalize makes of an island: an integer operator, or the reason why it stays on the host.

What comes in: nothing. What goes out: types. It must not know Relax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.artifacts import LayerOp


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

    `compute` is None for "reshape", which only renames: its NHWC data are the same bytes.
    Convolution inputs of a linear layer may be (n, k) or (n, c, h, w); its output is (n, m).
    """

    op: str  # "conv2d", "depthwise_conv2d", "linear", "add", "max_pool2d", "avg_pool2d",
    # "requantize", "clip" or "reshape"
    name: str
    layers: tuple[str, ...]  # names of the QDQ layers that it computes, the last is `name`
    inputs: tuple[Any, ...]  # quantized variables
    output: Any
    shape: tuple[int, ...]  # of the output, in the graph's layout
    input_quantization: tuple[Quantization, ...]
    quantization: Quantization
    compute: LayerOp | None


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an island stays on the host."""

    reason: str
