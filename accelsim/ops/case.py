"""A case: one operator with its shape, its quantization and its values.

What comes in: nothing. What goes out: frozen dataclasses. It must not know TVM, torch or hardware.
Activations are uint8 (or int8) in PyTorch's layout: (n, c, h, w), (n, s, c) or (n, k); weights are
int8. A family of operators with attributes of its own derives from `Spec`, so that each attribute
has a name, a type and a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]


def sized(default: Any, simplest: Any) -> Any:
    """A field whose simplest value, where a failing case shrinks to, is not its default."""
    return field(default=default, metadata={"simplest": simplest})


@dataclass(frozen=True, slots=True)
class Spec:
    """What a case is like, before values are drawn. `name` is unique within its operator."""

    name: str
    batch: int = sized(1, 1)
    channels: int = sized(8, 1)
    size: tuple[int, ...] = sized((5, 6), 1)  # spatial: (h, w), (s,) or ()
    relu: bool = False  # a ReLU behind the operator, before the output is quantized
    zeros: tuple[int, ...] = sized((), 128)  # forced zero points: inputs, then output
    spread: float = 40.0  # standard deviation of the output in output steps
    input_scale: float = 0.0  # 0: drawn
    values: str = "uniform"  # "uniform", "ends" (only 0 and 255) or "narrow" (near the zero point)
    rounding: str = "qnnpack"  # whose definition the integers follow, see `QuantizedModel.rounding`
    few: str = ""  # why an edge case's golden has fewer than 16 distinct values, where it has

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, c, …) of an input that has this size."""
        return (self.batch, self.channels, *self.size)


@dataclass(frozen=True, slots=True)
class Activation:
    """Stored values with their quantization."""

    values: NDArray[Any]  # uint8 or int8
    scale: np.float32
    zero: int

    @property
    def reals(self) -> NDArray[np.float32]:
        """(q - zero) · scale in float32."""
        centred = self.values.astype(np.float32) - np.float32(self.zero)
        return centred * self.scale


@dataclass(frozen=True, slots=True)
class Weight:
    """int8 weights, per tensor (one scale) or per output channel, and a float32 bias.

    `axis` is the axis of the output channels.
    """

    values: NDArray[np.int8]
    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    bias: NDArray[np.float32]
    axis: int = 0

    @property
    def reals(self) -> NDArray[np.float32]:
        """Dequantized."""
        shape = [1] * self.values.ndim
        shape[self.axis] = -1
        centred = self.values.astype(np.float32) - self.zero.reshape(shape).astype(np.float32)
        return (centred * self.scale.reshape(shape)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Case:
    """One operator on given values.

    `inputs` arrive at run time, as many as the operator takes; `constant` is a second operand that
    is stored with the network; `arrays` are float32 constants by name that the operator needs
    (slopes, gains). `floats` are what the first input quantizes, where the quantize is under test.
    """

    operator: str
    spec: Spec
    inputs: tuple[Activation, ...]
    scale: np.float32  # of the output
    zero: int
    weight: Weight | None = None
    constant: Activation | None = None
    arrays: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    floats: NDArray[np.float32] | None = None
    dtype: str = "uint8"  # of the stored output

    @property
    def name(self) -> str:
        """Name of the layer: operator/case."""
        return f"{self.operator}/{self.spec.name}"

    def input_name(self, side: int) -> str:
        """Name of an input tensor of the layer."""
        return f"{self.name}/in{side}"
