"""qnnpack's operators that take elements one by one, on random tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.artifacts import (
    Add,
    Binary,
    FixedAdd,
    LayerOp,
    Lookup,
    Shape4,
)
from accelsim.peers import qdq
from accelsim.peers.case import Trial, binary
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.qnnpack_draw import (
    ONE,
    ZERO,
    Array,
    Graph,
    fp32,
    quint8,
    run,
    scale,
    trial,
    zero,
)

quantized = torch.ops.quantized


def elementwise(rng: Generator, operator: str) -> Trial:
    """Sum or product of three scales; sums end in exact halves in some cases."""
    n, h, w, c = (int(v) for v in rng.integers(1, 9, 4))
    shape: Shape4 = (n, h, w, c + 8)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2))
    sa, za, zb, zy = scale(rng), zero(rng), zero(rng), zero(rng)
    ties = not rng.integers(3)
    sb = scale(rng, float(sa) if ties else None)
    if operator == "mul":
        sy = scale(rng, float(sa * sb) * (64 if ties else rng.uniform(50, 150)))
        op: LayerOp = Binary("multiply", za, zb, fp32(sa * sb * (ONE / sy), zy))
    else:
        sy = scale(rng, float(2 * sa) if ties else None)
        words = fixed_add(sa / sy, sb / sy)
        op = Add(za, zb, sa, sb, ONE / sy, zy, -128, 127, fixed=words)
    kernel = getattr(torch.ops.quantized, operator)
    region, inputs = binary("qnnpack", a, b, op, shape)
    expected = run(lambda: kernel(quint8(a, sa, za), quint8(b, sb, zb), float(sy), zy + ZERO))
    body = qdq.call(relax.op.add if operator == "add" else relax.op.multiply)
    form = Graph(((sa, za), (sb, zb)), (sy, zy), body).compiled([a, b], expected)
    return Trial(region, inputs, {"y": expected}, compiled=form)


def fixed_add(a: np.float32, b: np.float32) -> FixedAdd:
    """Ratios of scales as integers, the larger of 22 bits."""
    shift = 22 - math.frexp(float(max(a, b)))[1]
    first, second = (int(np.rint(ratio * np.float32(2.0**shift))) for ratio in (a, b))
    return FixedAdd(first, second, shift)


def table(
    rng: Generator,
    kernel: Callable[[Any, float, int], Any],
    function: Callable[[Array], Array],
    body: qdq.Body,
    output: tuple[float, int] | None = None,
) -> Trial:
    """A function of one input, all 256 values of which occur."""
    x = rng.permuted(np.arange(-128, 128)).astype(np.int8).reshape(1, 4, 4, 16)
    sx, zx = scale(rng), zero(rng)
    sy, zy = (scale(rng), zero(rng)) if output is None else (np.float32(output[0]), output[1])
    reals = ((np.arange(-128, 128) - zx).astype(np.float32) * sx).astype(np.float32)
    steps = np.rint(function(reals).astype(np.float32) * (ONE / sy)) + zy
    op = Lookup(np.clip(steps, -128, 127).astype(np.int8))
    graph = Graph(((sx, zx),), (sy, zy), body)
    return trial(x, lambda: kernel(quint8(x, sx, zx), float(sy), zy + ZERO), op, graph)


def sigmoid(v: Array) -> Array:
    """1 / (1 + exp(-v))."""
    return np.asarray(1 / (1 + np.exp(-v.astype(np.float64))))


def hard_swish(v: Array) -> Array:
    """v · relu6(v + 3) / 6 in float32."""
    return np.asarray(v * np.clip(v + np.float32(3), 0, 6) / np.float32(6))


def leaky(v: Array) -> Array:
    """v, or a tenth of it below 0, in float32."""
    return np.where(v > 0, v, v * np.float32(0.1))


def elu(v: Array) -> Array:
    """v, or exp(v) - 1 below 0."""
    return np.where(v > 0, v, np.expm1(v.astype(np.float64)))


def elu_graph(build: Any, values: list[Any]) -> Any:
    """relu(x) - relu(1 - exp(x)), as TVM's importers write it."""
    (x,) = values
    emit, one = build.emit, relax.const(1.0, "float32")
    under = emit(relax.op.nn.relu(emit(relax.op.subtract(one, emit(relax.op.exp(x))))))
    turned = emit(relax.op.multiply(relax.const(-1.0, "float32"), under))
    return emit(relax.op.add(turned, emit(relax.op.nn.relu(x))))


POINTWISE: dict[str, Maker] = {
    "add": partial(elementwise, operator="add"),
    "mul": partial(elementwise, operator="mul"),
    "sigmoid": partial(
        table,
        kernel=lambda x, s, z: torch.sigmoid(x),
        function=sigmoid,
        body=qdq.call(relax.op.sigmoid),
        output=(1 / 256, -128),
    ),
    "tanh": partial(
        table,
        kernel=lambda x, s, z: torch.tanh(x),
        function=np.tanh,
        body=qdq.call(relax.op.tanh),
        output=(1 / 128, 0),
    ),
    "hardswish": partial(
        table,
        kernel=lambda x, s, z: quantized.hardswish(x, s, z),
        function=hard_swish,
        body=qdq.hard_swish,
    ),
    "leaky_relu": partial(
        table,
        kernel=lambda x, s, z: quantized.leaky_relu(x, 0.1, False, s, z),
        function=leaky,
        body=qdq.call(relax.op.nn.leakyrelu, alpha=0.1),
    ),
    "elu": partial(
        table, kernel=lambda x, s, z: quantized.elu(x, s, z), function=elu, body=elu_graph
    ),
}
