"""A TensorFlow Lite model as it was read: plain values, all of them checked.

What comes in: nothing. What goes out: frozen dataclasses. It must not know flatbuffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Option = int | float | bool | tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TfliteTensor:
    """An activation, or a constant where it has values. `dtype` is NumPy's name of it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scales: NDArray[np.float32]  # empty without quantization, one, or one along `axis`
    zero_points: NDArray[np.int64]  # like `scales`
    axis: int = 0
    values: NDArray[Any] | None = None  # of `shape`

    @property
    def quantized(self) -> bool:
        """Whether its integers stand for real numbers."""
        return self.scales.size > 0 and self.dtype != "float32"


@dataclass(frozen=True, slots=True, eq=False)
class TfliteOperator:
    """One operator; inputs and outputs are indices of tensors, -1 where an input is absent."""

    op: str  # as TensorFlow Lite names it: "CONV_2D"
    name: str  # the layer's: that of its first output, unique
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TfliteModel:
    """The one graph of a model, its operators in the order in which they run."""

    name: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    data: bytes  # the file, as its framework reads it
    signature: Mapping[str, str] = field(default_factory=dict)  # tensor's name → the signature's

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, unique."""
        return tuple(self.tensors[index].name for index in self.inputs)

    @property
    def quantized(self) -> bool:
        """Whether any activation is quantized."""
        return any(one.quantized and one.values is None for one in self.tensors)
