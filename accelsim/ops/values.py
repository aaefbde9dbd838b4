"""Values of a case, drawn from its seed and its name alone, so that one case replays alone.

What comes in: an operator, a spec, a seed. What goes out: a `Case`. What all families draw alike
is here; what one family needs is in its module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import InputError
from accelsim.ops.case import Activation, Case, Spec, Weight
from accelsim.ops.operators import operator_of

UNIFORM_DEVIATION = 74  # standard deviation of a uniform byte
MATRIX_ERROR = 2.0**-23  # twice the unit round-off: both sides round


def make_case(operator: str, spec: Spec, seed: int) -> Case:
    """Draw quantization and values."""
    rng = np.random.default_rng([seed, crc32(f"{operator}/{spec.name}".encode())])
    found = operator_of(operator)
    if not found.legal(spec):
        raise InputError(f"{operator} has no case like {spec}")
    return found.make(rng, operator, spec)


def activation(
    rng: np.random.Generator,
    spec: Spec,
    side: int = 0,
    shape: tuple[int, ...] | None = None,
    scale: float = 0.0,
) -> Activation:
    """An input of `shape` (the spec's if None): drawn scale, drawn or forced zero point."""
    forced = side < len(spec.zeros)
    zero = spec.zeros[side] if forced else int(rng.integers(0, 256))
    drawn = spec.input_scale or float(2.0 ** rng.uniform(-7, -3))
    shape = spec.shape if shape is None else shape
    if spec.values == "ends":
        values = rng.choice(np.array([0, 255], np.uint8), shape)
    elif spec.values == "narrow":
        values = np.clip(zero + rng.integers(-3, 4, shape), 0, 255).astype(np.uint8)
    else:
        values = rng.integers(0, 256, shape).astype(np.uint8)
    return Activation(values, np.float32(scale or drawn), zero)


def output_zero(rng: np.random.Generator, spec: Spec, at: int) -> int:
    """The output's zero point; `at` is its place in `spec.zeros`."""
    zero = spec.zeros[at] if at < len(spec.zeros) else int(rng.integers(60, 200))
    return min(zero, 254) if spec.relu else zero  # or ReLU leaves one value


def fitting_scale(values: NDArray[Any], spec: Spec) -> np.float32:
    """An output scale with which real `values` spread over `spec.spread` steps."""
    deviation = float(values.astype(np.float64).std()) or float(np.abs(values).max()) or 1.0
    return np.float32(deviation / spec.spread)


def weighted(
    rng: np.random.Generator,
    spec: Spec,
    shape: tuple[int, ...],
    source: Activation,
    *,
    per_channel: bool = False,
    weight_zero: int = 0,
    terms: float = 0.0,
    axis: int = 0,
) -> tuple[Weight, np.float32]:
    """A weight of `shape`, and the output scale that fits sums of `terms` products.

    `terms` is by default the size of one output channel's weights.
    """
    outputs = shape[axis]
    count = outputs if per_channel else 1
    scale = (2.0 ** rng.uniform(-9, -6, count)).astype(np.float32)
    terms = terms or float(np.prod(shape)) / outputs
    step = float(source.scale) * float(scale.mean())
    offset = abs(127.5 - source.zero) / UNIFORM_DEVIATION + 1  # a mean off the zero point
    deviation = step * UNIFORM_DEVIATION**2 * np.sqrt(terms) * offset
    output_scale = np.float32(deviation / spec.spread)
    bias = (rng.standard_normal(outputs) * float(output_scale) * 20).astype(np.float32)
    values = rng.integers(-128, 128, shape).astype(np.int8)
    weight = Weight(values, scale, np.full(count, weight_zero, np.int64), bias, axis)
    return weight, output_scale


def size_between(rng: np.random.Generator, least: int, most: int) -> tuple[int, int]:
    """A (height, width), each in [least, most)."""
    return int(rng.integers(least, most)), int(rng.integers(least, most))


def drawn(rng: np.random.Generator, lanes: int, zeros: int) -> dict[str, Any]:
    """Fields that random specs of all families share, named "random".

    Any channel count up to three blocks, any `zeros` zero points (the extremes often), an output
    that saturates or not.
    """
    return {
        "name": "random",
        "batch": int(rng.integers(1, 3)),
        "channels": int(rng.integers(1, 3 * lanes)),
        "size": size_between(rng, 3, 12),
        "zeros": tuple(choice(rng, (0, 255, 128, int(rng.integers(256)))) for _ in range(zeros)),
        "spread": float(2.0 ** rng.uniform(2, 8)),
    }


def choice(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    """One of the values."""
    return values[int(rng.integers(len(values)))]
