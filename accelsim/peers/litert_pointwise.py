"""Random models whose layers take elements one by one, or rows: sums, tables, softmax.

What comes in: a random generator. What goes out: a `Trial` with LiteRT's outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import I8, Add, Binary, Lookup, Softmax
from accelsim.peers import qdq
from accelsim.peers import tflite_rules as rules
from accelsim.peers.case import Trial
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.litert_draw import (
    Graph,
    activation_limits,
    int8s,
    like,
    scale,
    trial,
    trial2,
    zero,
)
from accelsim.peers.litert_model import TfliteTensor, tflite_model
from accelsim.peers.shapes import identity

Side = tuple[float, int]  # scale, zero point
Function = Callable[[np.ndarray], np.ndarray]


def operands(rng: Generator) -> tuple[I8, I8, tuple[int, int, int, int]]:
    """Two activations of one shape, or the second broadcast along some axes."""
    n, h, w, c = (int(v) for v in rng.integers(1, 9, 4))
    shape = (n, h, w, c + 4)
    kept = [length if rng.integers(3) else 1 for length in shape]
    second = shape if rng.integers(2) else tuple(kept)
    return int8s(rng, *shape), int8s(rng, *second), shape


def arithmetic(rng: Generator, operator: str) -> Trial:
    """ADD, SUB or MUL of three scales."""
    a, b, shape = operands(rng)
    (sa, za), (sb, zb), zout = (scale(rng), zero(rng)), (scale(rng), zero(rng)), zero(rng)
    to = scale(rng) if operator != "MUL" else like(sa * sb * 100 * rng.uniform(0.5, 2), sa, sb)
    fused = int(rng.integers(4))
    model = tflite_model(
        operator,
        [TfliteTensor(a.shape, (sa,), za), TfliteTensor(b.shape, (sb,), zb)],
        [TfliteTensor(shape, (to,), zout)],
        f"{operator.capitalize()}Options",
        version=2,
        fusedActivationFunction=fused,
    )
    limits = activation_limits(fused, to, zout)
    body = qdq.call(
        getattr(relax.op, {"ADD": "add", "SUB": "subtract", "MUL": "multiply"}[operator])
    )
    graph = Graph(((sa, za), (sb, zb)), (to, zout), body, fused)
    if operator == "MUL":
        real = rules.product_multiplier(sa, sb, to)
        ends = rules.requantize("tflite", [real], zout, limits)
        return trial2(a, b, model, Binary("multiply", za, zb, ends), shape, graph)
    words = rules.add_words(sa, sb, to)
    scales = (np.float32(sa), np.float32(sb), np.float32(1) / np.float32(to))
    op = Add(za, zb, *scales, zout, *limits, tflite=words, subtract=operator == "SUB")
    return trial2(a, b, model, op, shape, graph)


def extremum(rng: Generator, operator: str) -> Trial:
    """MINIMUM or MAXIMUM of one scale."""
    a, b, shape = operands(rng)
    s, z = scale(rng), zero(rng)
    model = tflite_model(
        operator,
        [TfliteTensor(a.shape, (s,), z), TfliteTensor(b.shape, (s,), z)],
        [TfliteTensor(shape, (s,), z)],
        "MaximumMinimumOptions",
        version=2,
    )
    graph = Graph(((s, z), (s, z)), (s, z), qdq.call(getattr(relax.op, operator.lower())))
    return trial2(a, b, model, Binary(operator.lower(), 0, 0, identity()), shape, graph)


def lookup(
    rng: Generator,
    operator: str,
    table: Callable[[Side, Side], I8],
    body: qdq.Body,
    output: Side | None = None,
    version: int = 2,
    options: str = "",
    fields: Mapping[str, Any] | None = None,
    least: int | None = None,
) -> Trial:
    """An operator of one input, all 256 values of which occur; `least` is its zero point."""
    source: Side = (scale(rng), zero(rng) if least is None else least)
    to: Side = output or (scale(rng, 0.01), zero(rng))
    x = rng.permuted(np.arange(-128, 128)).astype(np.int8).reshape(1, 4, 4, 16)
    model = tflite_model(
        operator,
        [TfliteTensor(x.shape, (source[0],), source[1])],
        [TfliteTensor(x.shape, (to[0],), to[1])],
        options,
        version=version,
        **(fields or {}),
    )
    return trial(x, model, Lookup(table(source, to)), (1, 4, 4, 16), Graph((source,), to, body))


def function(function: Function) -> Callable[[Side, Side], I8]:
    """A table of a real function."""
    return lambda source, to: rules.float_table(function, source, to)


def rectified(kind: int) -> Callable[[Side, Side], I8]:
    """RELU and its like: a change of scale, in float32, and a clamp."""

    def table(source: Side, to: Side) -> I8:
        real = float(np.float32(source[0]) / np.float32(to[0]))
        return rules.rescaled_table(source, to, real, activation_limits(kind, *to))

    return table


def requantized(source: Side, to: Side) -> I8:
    """QUANTIZE of int8: a change of scale, in double precision."""
    return rules.rescaled_table(source, to, rules.single(source[0]) / rules.single(to[0]))


def softmax(rng: Generator) -> Trial:
    """Rows of random length, scale and beta."""
    rows, size = int(rng.integers(1, 12)), int(rng.integers(2, 60))
    source, zin = scale(rng, 0.01, 0.4), zero(rng)
    beta = float(np.float32(rng.uniform(0.5, 1.5))) if rng.integers(2) else 1.0
    shape = (1, 1, rows, size)
    x = int8s(rng, *shape)
    model = tflite_model(
        "SOFTMAX",
        [TfliteTensor(shape, (source,), zin)],
        [TfliteTensor(shape, (1 / 256,), -128)],
        "SoftmaxOptions",
        version=2,
        beta=beta,
    )
    body = qdq.call(relax.op.nn.softmax, axis=-1)
    graph = Graph(((source, zin),), (1 / 256, -128), body) if beta == 1.0 else None
    return trial(x, model, Softmax(rules.softmax_table(source, beta)), shape, graph)


def leaky_relu(rng: Generator) -> Trial:
    """Two changes of scale, one a sign."""
    slope = float(np.float32(rng.uniform(0.01, 0.6)))

    def table(source: Side, to: Side) -> I8:
        ratio = np.float32(source[0]) / np.float32(to[0])
        falling = np.float32(source[0]) * np.float32(slope) / np.float32(to[0])
        over = rules.rescaled_table(source, to, float(ratio))
        under = rules.rescaled_table(source, to, float(falling))
        return np.where(np.arange(-128, 128) >= source[1], over, under)

    fields = {"alpha": slope}
    body = qdq.call(relax.op.nn.leakyrelu, alpha=slope)
    return lookup(rng, "LEAKY_RELU", table, body, options="LeakyReluOptions", fields=fields)


def gelu(x: np.ndarray) -> np.ndarray:
    """x · Φ(x), Φ as half of erfc(-x/√2), each in float32."""
    turned = x * np.float32(-math.sqrt(0.5))
    double = np.array([math.erfc(float(v)) for v in turned], np.float32)
    return np.float32(0.5) * x * double


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Its form with tanh, in float32."""
    slope, third = np.float32(math.sqrt(2 / math.pi)), np.float32(0.044715)
    inner = slope * x * (np.float32(1) + third * x * x)
    result: np.ndarray = np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))
    return result


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) in float32."""
    result: np.ndarray = np.float32(1) / (np.float32(1) + np.exp(-x))
    return result


def logarithm(x: np.ndarray) -> np.ndarray:
    """In float32; far below every output where there is none."""
    above = np.where(x > 0, x, np.float32(1))
    result: np.ndarray = np.where(x > 0, np.log(above), np.float32(-1e6))
    return result


def by_table(
    operator: str,
    table: Callable[[Side, Side], I8],
    body: qdq.Body,
    output: Side | None = None,
    version: int = 2,
    least: int | None = None,
) -> Maker:
    """A maker of one operator."""
    return partial(
        lookup,
        operator=operator,
        table=table,
        body=body,
        output=output,
        version=version,
        least=least,
    )


nn = relax.op.nn
POINTWISE: dict[str, Maker] = {
    "add": partial(arithmetic, operator="ADD"),
    "sub": partial(arithmetic, operator="SUB"),
    "mul": partial(arithmetic, operator="MUL"),
    "minimum": partial(extremum, operator="MINIMUM"),
    "maximum": partial(extremum, operator="MAXIMUM"),
    "softmax": softmax,
    "logistic": by_table(
        "LOGISTIC", function(logistic), qdq.call(relax.op.sigmoid), (1 / 256, -128)
    ),
    "tanh": by_table("TANH", function(np.tanh), qdq.call(relax.op.tanh), (1 / 128, 0)),
    "relu": by_table("RELU", rectified(1), qdq.call(nn.relu)),
    "relu_n1_to_1": by_table(
        "RELU_N1_TO_1", rectified(2), qdq.call(relax.op.clip, min=-1, max=1), version=1
    ),
    "relu6": by_table("RELU6", rectified(3), qdq.call(relax.op.clip, min=0, max=6)),
    "leaky_relu": leaky_relu,
    "hard_swish": by_table("HARD_SWISH", rules.hard_swish_table, qdq.hard_swish, version=1),
    "gelu": partial(
        lookup,
        operator="GELU",
        table=function(gelu),
        body=qdq.call(nn.gelu),
        options="GeluOptions",
        fields={"approximate": False},
    ),
    "gelu_tanh": partial(
        lookup,
        operator="GELU",
        table=function(gelu_tanh),
        body=qdq.call(nn.gelu_tanh),
        options="GeluOptions",
        fields={"approximate": True},
    ),
    "exp": by_table("EXP", function(np.exp), qdq.call(relax.op.exp)),
    "log": by_table("LOG", function(logarithm), qdq.call(relax.op.log)),
    "sqrt": by_table("SQRT", rules.root_table, qdq.call(relax.op.sqrt), least=-128),
    "rsqrt": by_table("RSQRT", rules.inverse_root_table, qdq.call(relax.op.rsqrt), least=-128),
    "quantize": by_table("QUANTIZE", requantized, qdq.same),
}
