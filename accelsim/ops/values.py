"""Values of a case, drawn from its seed and its name alone, so that one case replays alone.

What comes in: an operator's name, a spec, a seed. What goes out: a `Case`.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from accelsim.ops.case import Activation, Case, Spec, Weight

MATRIX = ("conv2d", "depthwise_conv2d", "linear", "flatten")


def make_case(operator: str, spec: Spec, seed: int) -> Case:
    """Draw quantization and values."""
    rng = np.random.default_rng([seed, crc32(f"{operator}/{spec.name}".encode())])
    count = 2 if operator == "add" else 1
    inputs = tuple(_activation(rng, operator, spec, side) for side in range(count))
    first = inputs[0]
    if operator in MATRIX:
        return _affine(rng, operator, spec, first)
    if operator == "add":
        deviation = np.sqrt(sum(float(one.scale) ** 2 for one in inputs)) * 74
        scale = np.float32(deviation / spec.spread)
        return Case(operator, spec, inputs, scale, _output_zero(rng, spec, 2))
    floats = _floats(rng, first) if operator in ("quantize", "dequantize") else None
    if floats is not None:
        first = Activation(quantized(floats, first), first.scale, first.zero)
    return Case(operator, spec, (first,), first.scale, first.zero, floats=floats)


def quantized(floats: NDArray[np.float32], like: Activation) -> NDArray[np.uint8]:
    """rint(x · (1/scale)) + zero, saturated to uint8, every step in float32."""
    steps = np.rint(floats * (np.float32(1) / like.scale)) + np.float32(like.zero)
    return np.asarray(np.clip(steps, 0, 255), np.uint8)


def _shape(operator: str, spec: Spec) -> tuple[int, ...]:
    if operator == "linear":
        return (spec.batch, spec.channels)
    return (spec.batch, spec.channels, *spec.size)


def _activation(rng: np.random.Generator, operator: str, spec: Spec, side: int) -> Activation:
    forced = side < len(spec.zeros)
    zero = spec.zeros[side] if forced else int(rng.integers(0, 256))
    scale = spec.input_scale or float(2.0 ** rng.uniform(-7, -3))
    if operator == "relu6":
        scale = 6 / float(rng.integers(40, 220))  # the limit of 6 lies within the range
    shape = _shape(operator, spec)
    if spec.values == "ends":
        values = rng.choice(np.array([0, 255], np.uint8), shape)
    elif spec.values == "narrow":
        values = np.clip(zero + rng.integers(-3, 4, shape), 0, 255).astype(np.uint8)
    else:
        values = rng.integers(0, 256, shape).astype(np.uint8)
    return Activation(values, np.float32(scale), zero)


def _output_zero(rng: np.random.Generator, spec: Spec, at: int) -> int:
    zero = spec.zeros[at] if at < len(spec.zeros) else int(rng.integers(60, 200))
    return min(zero, 254) if spec.relu else zero  # or ReLU leaves one value


def _floats(rng: np.random.Generator, like: Activation) -> NDArray[np.float32]:
    """Reals around the range: ties, values between steps, and what saturates."""
    shape = like.values.shape
    steps = rng.uniform(-like.zero - 20, 275 - like.zero, shape)
    ties = np.floor(steps) + 0.5
    chosen = np.where(rng.random(shape) < 0.3, ties, steps)
    return (chosen * float(like.scale)).astype(np.float32)


def _affine(rng: np.random.Generator, operator: str, spec: Spec, source: Activation) -> Case:
    shape = _weight_shape(operator, spec)
    outputs = shape[0]
    count = outputs if spec.per_channel else 1
    weight_scale = (2.0 ** rng.uniform(-9, -6, count)).astype(np.float32)
    weight_zero = np.full(count, spec.weight_zero, np.int64)
    terms = float(np.prod(shape[1:]))
    real_step = float(source.scale) * float(weight_scale.mean())
    offset = abs(127.5 - source.zero) / 74 + 1  # a mean far from the zero point spreads further
    scale = np.float32(real_step * 74 * 74 * np.sqrt(terms) * offset / spec.spread)
    bias = (rng.standard_normal(outputs) * float(scale) * 20).astype(np.float32)
    weight = Weight(rng.integers(-128, 128, shape).astype(np.int8), weight_scale, weight_zero, bias)
    return Case(operator, spec, (source,), scale, _output_zero(rng, spec, 1), weight)


def _weight_shape(operator: str, spec: Spec) -> tuple[int, ...]:
    if operator == "linear":
        return (spec.outputs, spec.channels)
    if operator == "flatten":
        return (spec.outputs, spec.channels * spec.size[0] * spec.size[1])
    if operator == "depthwise_conv2d":
        return (spec.channels, 1, *spec.kernel)
    return (spec.outputs, spec.channels, *spec.kernel)
