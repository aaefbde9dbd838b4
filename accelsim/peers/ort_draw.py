"""Random numbers of one case of ONNX Runtime, the model built from them, and what cases share.

What comes in: a random generator. What goes out: constants, inputs, outputs. It must not know
operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accelsim.artifacts import I8, Requantize
from accelsim.peers import qdq
from accelsim.peers.case import Compiled
from accelsim.peers.draws import Generator
from accelsim.peers.onnx_model import Array, Step, onnx_model, onnx_output, stored, stored_zero

MICROSOFT = "com.microsoft"
F32 = np.float32


class Draw:
    """Random numbers of one case, and the model that is built from them."""

    def __init__(self, rng: Generator) -> None:
        """Choose uint8 or int8."""
        self.rng = rng
        self.dtype: Any = np.uint8 if rng.integers(2) else np.int8
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}

    def activation(self, name: str, *shape: int) -> Array:
        """A full-range input of the model."""
        low, high = self.limits
        self.inputs[name] = self.rng.integers(low, high + 1, shape).astype(self.dtype)
        return self.inputs[name]

    @property
    def limits(self) -> tuple[int, int]:
        """Range of the activations' type."""
        return int(np.iinfo(self.dtype).min), int(np.iinfo(self.dtype).max)

    def scale(self, name: str, value: float | None = None) -> np.float32:
        """A scale, random unless given."""
        drawn = np.exp(self.rng.uniform(-5, -1)) if value is None else value
        self.constants[f"s{name}"] = np.array(drawn, F32)
        return F32(drawn)

    def zero(self, name: str) -> int:
        """A zero point of the activations' type, in the int8 domain; extremes occur."""
        low, high = self.limits
        value = int(self.rng.choice([low, high, *self.rng.integers(low, high + 1, 4)]))
        self.constants[f"z{name}"] = np.array(value, self.dtype)
        return stored_zero(value, self.dtype)

    def integer(self, low: int, high: int) -> int:
        """A random length, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def run(self, *steps: Step) -> Array:
        """The model's output."""
        name = np.dtype(self.dtype).name
        return onnx_output(onnx_model(steps, self.inputs, self.constants, name), self.inputs)

    def compiled(self, names: Sequence[str], y: Array, body: qdq.Body) -> Compiled:
        """The model as a Relax graph: inputs by name, each with its scale and zero point."""
        sides = [qdq.Side(*self.side(name), stored(self.inputs[name])) for name in names]
        return qdq.compiled("onnxruntime", sides, qdq.Side(*self.side("y")), stored(y), body)

    def side(self, name: str) -> tuple[float, int]:
        """Scale, 1 where the model has none, and zero point in the int8 domain."""
        zero = self.constants[f"z{name}"]
        scale = self.constants.get(f"s{name}", np.array(1, F32))
        return float(scale), stored_zero(int(zero), zero.dtype)


def numbers(draw: Draw, names: Sequence[str]) -> tuple[Any, ...]:
    """Constants as float32."""
    return tuple(F32(draw.constants[name]) for name in names)


def rounded(draw: Draw, values: Array) -> I8:
    """float32 → the activations' type, rounded half to even and clipped, as int8."""
    return stored(np.clip(np.rint(values), *draw.limits).astype(draw.dtype))


def fp32(multiplier: Any, zero: int) -> Requantize:
    """Requantization as ONNX Runtime does it."""
    return Requantize(np.atleast_1d(np.asarray(multiplier, F32)), zero, -128, 127)
