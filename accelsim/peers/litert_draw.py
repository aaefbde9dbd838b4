"""What random models of LiteRT share: numbers, shapes, and a trial with the model's output.

What comes in: a random generator, a model, a layer and a Relax graph. What goes out: a `Trial`. It
must not know operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import I8, LayerOp, Shape4
from accelsim.peers import qdq
from accelsim.peers.case import Compiled, Trial, binary, chain
from accelsim.peers.draws import Generator
from accelsim.peers.litert_model import tflite_outputs

SAME, VALID = 0, 1
NO_ACTIVATION, RELU, RELU_N1_TO_1, RELU6 = range(4)


def int8s(rng: Generator, *shape: int) -> I8:
    """Full-range random integers."""
    return rng.integers(-128, 128, shape).astype(np.int8)


def scale(rng: Generator, low: float = 0.005, high: float = 0.2) -> float:
    """A random float32 scale; half of them are powers of two, with which results end in halves."""
    drawn = np.exp(rng.uniform(np.log(low), np.log(high)))
    return power(drawn) if rng.integers(2) else float(np.float32(drawn))


def power(value: float) -> float:
    """The nearest power of two."""
    return float(2.0 ** np.rint(np.log2(value)))


def is_power(value: float) -> bool:
    """Whether a scale is a power of two."""
    return value == power(value)


def like(value: float, *others: float) -> float:
    """A scale near a value, a power of two where all others are."""
    return power(value) if all(map(is_power, others)) else float(np.float32(value))


def zero(rng: Generator) -> int:
    """A random zero point, extremes included."""
    return int(rng.choice([-128, 127, 0, *rng.integers(-128, 128, 3)]))


def activation_limits(kind: int, output: float, zero_point: int) -> tuple[int, int]:
    """Clamp limits of a fused activation."""
    low, high = {
        NO_ACTIVATION: (None, None),
        RELU: (0.0, None),
        RELU_N1_TO_1: (-1.0, 1.0),
        RELU6: (0.0, 6.0),
    }[kind]
    steps = [
        None if limit is None else zero_point + int(np.floor(abs(limit) / output + 0.5)) * sign
        for limit, sign in ((low, -1), (high, 1))
    ]
    bottom = -128 if steps[0] is None else max(-128, steps[0])
    return bottom, 127 if steps[1] is None else min(127, steps[1])


def same_or_valid(size: int, kernel: int, stride: int, dilation: int, kind: int) -> tuple[int, int]:
    """(outputs, padding before) of an axis."""
    reach = (kernel - 1) * dilation + 1
    if kind == VALID:
        return (size - reach) // stride + 1, 0
    out = -(-size // stride)
    return out, max(0, (out - 1) * stride + reach - size) // 2


@dataclass(frozen=True, slots=True)
class Graph:
    """A model as a Relax graph: scale and zero point of each input and of the output."""

    sources: tuple[tuple[float, int], ...]
    target: tuple[float, int]
    body: qdq.Body
    fused: int = NO_ACTIVATION
    images: bool = False  # channels come second in it

    def compiled(self, inputs: Sequence[I8], expected: I8) -> Compiled:
        """For the whole compiler."""
        turn = qdq.image if self.images else np.ascontiguousarray
        pairs = zip(self.sources, inputs, strict=True)
        sides = [qdq.Side(*side, turn(values)) for side, values in pairs]
        target = qdq.Side(*self.target)
        return qdq.compiled("tflite", sides, target, turn(expected), self.body, self.fused)


def trial(x: I8, model: bytes, op: LayerOp, shape: Shape4, graph: Graph | None = None) -> Trial:
    """A layer against the model's output, and the compiled graph too."""
    (expected,) = tflite_outputs(model, x)
    form = None if graph is None else graph.compiled([x], expected)
    source = x.reshape(-1, 1, 1, x.shape[1]) if x.ndim == 2 else x
    region, inputs = chain("litert", source, (op, shape))
    return Trial(region, inputs, {"y0": expected.reshape(shape)}, compiled=form)


def trial2(
    a: I8, b: I8, model: bytes, op: LayerOp, shape: Shape4, graph: Graph | None = None
) -> Trial:
    """The same for two activations."""
    region, inputs = binary("litert", a, b, op, shape)
    (expected,) = tflite_outputs(model, a, b)
    form = None if graph is None else graph.compiled([a, b], expected)
    return Trial(region, inputs, {"y": expected.reshape(shape)}, compiled=form)
