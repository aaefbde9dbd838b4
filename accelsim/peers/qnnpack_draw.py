"""Tensors, kernels and graphs of PyTorch's qnnpack engine, for random cases of any operator.

Activations are quint8 there and int8 here, 128 less. Multipliers are derived in float32 throughout.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accelsim.artifacts import (
    F32,
    I8,
    LayerOp,
    Requantize,
)
from accelsim.peers import qdq
from accelsim.peers.case import Compiled, Trial, chain, shape4
from accelsim.peers.draws import Generator
from accelsim.quantize import qnnpack_engine

ONE = np.float32(1)
ZERO = 128  # of an activation in int8, as quint8 has it
Array = NDArray[Any]


def scale(rng: Generator, value: float | None = None) -> np.float32:
    """A scale, random unless given."""
    return np.float32(np.exp(rng.uniform(-5, -1)) if value is None else value)


def zero(rng: Generator) -> int:
    """A zero point in the int8 domain; extremes occur."""
    return int(rng.choice([-128, 127, *rng.integers(-128, 128, 4)]))


def quint8(values: I8, s: np.float32, z: int) -> Any:
    """(n, h, w, c) or (rows, k) int8 as PyTorch's quantized tensor, channels second."""
    stored = (values.astype(np.int16) + ZERO).astype(np.uint8)
    moved = np.ascontiguousarray(np.moveaxis(stored, -1, 1))
    return torch._make_per_tensor_quantized_tensor(torch.from_numpy(moved), float(s), z + ZERO)


def run(kernel: Callable[[], Any]) -> I8:
    """A kernel's output on the qnnpack engine, channels last, as int8."""
    with qnnpack_engine(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized tensors are announced to end
        stored = np.moveaxis(kernel().int_repr().numpy(), 1, -1)
    return np.ascontiguousarray((stored.astype(np.int16) - ZERO).astype(np.int8))


def qint8(values: I8, scales: F32) -> Any:
    """A weight with one scale, or one an output channel."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if scales.size == 1:
        return torch._make_per_tensor_quantized_tensor(tensor, float(scales[0]), 0)
    many = torch.from_numpy(scales.astype(np.float64))
    none = torch.zeros(scales.size, dtype=torch.long)
    return torch._make_per_channel_quantized_tensor(tensor, many, none, 0)


def fp32(multiplier: Any, z: int, low: int = -128) -> Requantize:
    """Requantization with float32 multipliers."""
    return Requantize(np.atleast_1d(np.asarray(multiplier, np.float32)), z, low, 127)


@dataclass(frozen=True, slots=True)
class Graph:
    """A case as a Relax graph: scale and zero point of each input and of the output."""

    sources: tuple[tuple[np.float32, int], ...]
    target: tuple[np.float32, int]
    body: qdq.Body
    fused: int = 0

    def compiled(self, inputs: Sequence[I8], expected: I8) -> Compiled:
        """For the whole compiler; images have channels second there."""

        def turned(values: I8) -> I8:
            return np.ascontiguousarray(np.moveaxis(values, -1, 1))

        pairs = zip(self.sources, inputs, strict=True)
        sides = [qdq.Side(float(s), z, turned(values)) for (s, z), values in pairs]
        target = qdq.Side(float(self.target[0]), self.target[1])
        return qdq.compiled("qnnpack", sides, target, turned(expected), self.body, self.fused)


def trial(x: I8, kernel: Callable[[], Any], op: LayerOp, graph: Graph, flat: bool = False) -> Trial:
    """A layer of one (n, h, w, c) activation against a kernel; `flat` has no height and width."""
    expected = run(kernel)
    form = graph.compiled([x.reshape(x.shape[0], -1) if flat else x], expected)
    shape = (expected.shape[0], 1, 1, expected.shape[1]) if expected.ndim == 2 else expected.shape
    region, inputs = chain("qnnpack", x, (op, shape4(expected.reshape(shape))))
    return Trial(region, inputs, {"y0": expected.reshape(shape)}, compiled=form)


def weight(rng: Generator, *shape: int) -> tuple[I8, F32, F32]:
    """(out, in, …) weights, their scales, and a real bias."""
    values = rng.integers(-128, 128, shape).astype(np.int8)
    scales = np.exp(rng.uniform(-6, -3, shape[0] if rng.integers(2) else 1)).astype(np.float32)
    bias = rng.uniform(-3, 3, shape[0]).astype(np.float32)
    return values, scales, bias


def spread(values: I8) -> float:
    """What a sum of products is divided by to spread over int8."""
    return 74 * 74 * math.sqrt(values[0].size) / 60
