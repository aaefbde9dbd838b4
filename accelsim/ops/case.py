"""A case: one operator with its shape, its quantization and its values.

What comes in: nothing. What goes out: frozen dataclasses. It must not know TVM, torch or hardware.
Activations are uint8 in PyTorch's layout, (n, c, h, w) or (n, k); weights are int8.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
Limits = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Spec:
    """What a case is like, before values are drawn. `name` is unique within its operator."""

    name: str
    batch: int = 1
    channels: int = 8
    size: Pair = (5, 6)
    outputs: int = 8
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    relu: bool = False  # fused behind a convolution, a linear layer or an addition
    limits: Limits | None = None  # of relu, relu6 and clip, as real numbers in input scales
    zeros: tuple[int, ...] = ()  # forced zero points: inputs, then output
    weight_zero: int = 0
    per_channel: bool = False
    spread: float = 40.0  # standard deviation of the output in output steps
    input_scale: float = 0.0  # 0: drawn
    values: str = "uniform"  # "uniform", "ends" (only 0 and 255) or "narrow" (near the zero point)


@dataclass(frozen=True, slots=True)
class Activation:
    """Stored values with their quantization."""

    values: NDArray[np.uint8]
    scale: np.float32
    zero: int

    @property
    def reals(self) -> NDArray[np.float32]:
        """(q - zero) · scale in float32."""
        centred = self.values.astype(np.float32) - np.float32(self.zero)
        return centred * self.scale


@dataclass(frozen=True, slots=True)
class Weight:
    """int8 weights, per tensor (one scale) or per output channel, and a float32 bias."""

    values: NDArray[np.int8]
    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    bias: NDArray[np.float32]

    @property
    def reals(self) -> NDArray[np.float32]:
        """Dequantized."""
        shape = (-1,) + (1,) * (self.values.ndim - 1)
        centred = self.values.astype(np.float32) - self.zero.reshape(shape).astype(np.float32)
        return (centred * self.scale.reshape(shape)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Case:
    """One operator on given values."""

    operator: str
    spec: Spec
    inputs: tuple[Activation, ...]
    scale: np.float32  # of the output
    zero: int
    weight: Weight | None = None
    floats: NDArray[np.float32] | None = field(default=None)  # what the first input quantizes

    @property
    def name(self) -> str:
        """Name of the layer: operator/case."""
        return f"{self.operator}/{self.spec.name}"

    def input_name(self, side: int) -> str:
        """Name of an input tensor of the layer."""
        return f"{self.name}/in{side}"
