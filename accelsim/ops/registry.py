"""The operators: each with the edge cases of a configuration and a random generator.

What comes in: a configuration, a generator. What goes out: specs. It must not know how a case is
computed. Adding an operator means adding a row to OPERATORS, and its kernels in `torch_kernels`
and `modules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from accelsim.ops.case import Spec
from accelsim.ops.edges import (
    add_edges,
    conv_edges,
    depthwise_edges,
    flatten_edges,
    global_pool_edges,
    linear_edges,
    max_pool_edges,
    unary_edges,
)
from accelsim.spec.config import Config

Edges = Callable[[Config], tuple[Spec, ...]]
Draw = Callable[[np.random.Generator, Config], Spec]
INFINITE = float("inf")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. `draw` names its spec "random"; the number is added by `specs_of`."""

    name: str
    edges: Edges
    draw: Draw


def _size(rng: np.random.Generator, least: int, most: int) -> tuple[int, int]:
    return int(rng.integers(least, most)), int(rng.integers(least, most))


def _zeros(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    choices = ((0, 255, 128, int(rng.integers(256))) for _ in range(count))
    return tuple(row[int(rng.integers(4))] for row in choices)


def _base(rng: np.random.Generator, config: Config, zeros: int) -> Spec:
    """Any channel count up to three blocks, any zero points, an output that saturates or not."""
    most = 3 * config.lanes
    return Spec(
        "random",
        batch=int(rng.integers(1, 3)),
        channels=int(rng.integers(1, most)),
        outputs=int(rng.integers(1, most)),
        size=_size(rng, 3, 12),
        zeros=_zeros(rng, zeros),
        per_channel=bool(rng.integers(2)),
        spread=float(2.0 ** rng.uniform(2, 8)),
    )


def _window(rng: np.random.Generator, spec: Spec, dilate: bool) -> Spec:
    kernel = [(1, 1), (3, 3), (2, 3), (5, 1), (3, 2)][int(rng.integers(5))]
    dilation = _size(rng, 1, 3) if dilate else (1, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = tuple(max(s, r) for s, r in zip(spec.size, reach, strict=True))
    padding = tuple(int(rng.integers(0, (k if dilate else k // 2 + 1))) for k in kernel)
    return replace(
        spec,
        kernel=kernel,
        stride=_size(rng, 1, 4),
        padding=(padding[0], padding[1]),
        dilation=dilation,
        size=(size[0], size[1]),
    )


def _draw_conv(rng: np.random.Generator, config: Config) -> Spec:
    spec = _window(rng, _base(rng, config, 2), True)
    zero = 0 if spec.per_channel else int(rng.integers(-128, 128))
    return replace(spec, weight_zero=zero, relu=bool(rng.integers(2)))


def _draw_depthwise(rng: np.random.Generator, config: Config) -> Spec:
    spec = _draw_conv(rng, config)
    return replace(spec, outputs=spec.channels)


def _draw_linear(rng: np.random.Generator, config: Config) -> Spec:
    spec = replace(_base(rng, config, 2), size=(1, 1), batch=int(rng.integers(1, 6)))
    return replace(spec, channels=int(rng.integers(1, 9 * config.lanes)))


def _draw_flatten(rng: np.random.Generator, config: Config) -> Spec:
    return replace(_base(rng, config, 2), size=_size(rng, 1, 6))


def _draw_pool(rng: np.random.Generator, config: Config) -> Spec:
    spec = _window(rng, _base(rng, config, 1), False)
    if spec.kernel == (1, 1):  # PyTorch's kernel refuses it
        spec = replace(spec, kernel=(2, 2), padding=(1, 1))
    return spec


def _draw_global(rng: np.random.Generator, config: Config) -> Spec:
    return replace(_base(rng, config, 1), size=_size(rng, 1, 14))


def _draw_add(rng: np.random.Generator, config: Config) -> Spec:
    return replace(_base(rng, config, 3), relu=bool(rng.integers(2)))


def _unary(low: float | None, high: float | None) -> Draw:
    """Limits given or drawn, in input scales from the zero point."""

    def draw(rng: np.random.Generator, config: Config) -> Spec:
        ends = sorted(rng.uniform(-200, 200, 2))
        limits = (ends[0] if low is None else low, ends[1] if high is None else high)
        return replace(_base(rng, config, 1), limits=(float(limits[0]), float(limits[1])))

    return draw


OPERATORS: dict[str, Operator] = {
    row.name: row
    for row in (
        Operator("conv2d", conv_edges, _draw_conv),
        Operator("depthwise_conv2d", depthwise_edges, _draw_depthwise),
        Operator("linear", linear_edges, _draw_linear),
        Operator("relu", unary_edges(0.0, INFINITE), _unary(0.0, INFINITE)),
        Operator("relu6", unary_edges(0.0, 6.0), _unary(0.0, 6.0)),
        Operator("clip", unary_edges(-20.0, 90.0), _unary(None, None)),
        Operator("add", add_edges, _draw_add),
        Operator("max_pool2d", max_pool_edges, _draw_pool),
        Operator("global_avg_pool2d", global_pool_edges, _draw_global),
        Operator("flatten", flatten_edges, _draw_flatten),
        Operator("quantize", unary_edges(0.0, INFINITE), _unary(0.0, INFINITE)),
        Operator("dequantize", unary_edges(0.0, INFINITE), _unary(0.0, INFINITE)),
    )
}


def specs_of(operator: Operator, config: Config, seed: int, random: int) -> tuple[Spec, ...]:
    """The edge cases of a configuration, then `random` drawn ones named random0, random1, …"""
    drawn = []
    for number in range(random):
        rng = np.random.default_rng([seed, number, crc32(operator.name.encode())])
        drawn.append(replace(operator.draw(rng, config), name=f"random{number}"))
    return (*operator.edges(config), *drawn)
