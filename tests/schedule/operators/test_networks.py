"""Operators of all families one after another: whole, and each layer cut out of the program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelsim.artifacts import (
    Assemble,
    Binary,
    ConvTranspose2d,
    Layer,
    LayerOp,
    Lookup,
    MatMul,
    Piece,
    PRelu,
    Region,
    Shape4,
    Softmax,
    Tensor,
    Transpose,
)
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.normalization import softmax_table
from tests.schedule import layers
from tests.schedule.operators.test_rows import norm
from tests.schedule.test_schedule import check

Row = tuple[str, LayerOp, tuple[str, ...], Shape4]


def network(inputs: dict[str, Shape4], rows: list[Row]) -> Region:
    """A region of layers (name, what they compute, what they read, shape); the last one is out."""
    tensors = {n: Tensor(n, shape, 0, 0.1) for n, shape in inputs.items()}
    tensors |= {name: Tensor(name, shape, 0, 0.1) for name, _, _, shape in rows}
    made = tuple(Layer(n, type(op).__name__, (n,), ins, n, op) for n, op, ins, _ in rows)
    return Region("network", tensors, tuple(inputs), (rows[-1][0],), made)


def table(rng: np.random.Generator) -> Lookup:
    return Lookup(rng.permutation(256).astype(np.uint8).view(np.int8))


def halves(shape: Shape4, half: int) -> Assemble:
    """The first or second half of the channels."""
    n, h, w, c = shape
    take = [np.arange(size, dtype=np.int32) for size in (n, h, w, c // 2)]
    place = tuple(take)
    take[3] = take[3] + half * (c // 2)
    return Assemble((Piece(0, tuple(take), place),))  # type: ignore[arg-type]


def attention(tokens: int, width: int, heads: int) -> Region:
    """Pre-normalized attention over (1, 1, tokens, width), heads by transposition."""
    rng = np.random.default_rng(31)
    deep = width // heads
    full, split = (1, 1, tokens, width), (1, tokens, heads, deep)
    apart = (1, heads, tokens, deep)
    rows: list[Row] = [("norm", norm(rng, width), ("x",), full)]
    for name in "qkv":
        rows.append((name, layers.conv(rng, width, width, (1, 1)), ("norm",), full))
        # What a reshape renames: the same bytes only where deep is a multiple of the lanes.
        parts = []
        for head in range(heads):
            channels = np.arange(head * deep, (head + 1) * deep, dtype=np.int32)
            ones = np.zeros(1, np.int32)
            each, all_deep = np.arange(tokens, dtype=np.int32), np.arange(deep, dtype=np.int32)
            parts.append((head, channels, ones, each, all_deep))
        pieces = tuple(Piece(0, (o, o, t, c), (o, o + head, t, d)) for head, c, o, t, d in parts)
        rows.append((f"{name}_heads", Assemble(pieces), (name,), apart))
    scores = MatMul(3, -5, True, layers.end(rng, "fp32", 0.002))
    rows.append(("scores", scores, ("q_heads", "k_heads"), (1, heads, tokens, tokens)))
    rows.append(("weights", Softmax(softmax_table(0.1)), ("scores",), rows[-1][3]))
    mixed = MatMul(-128, 2, False, layers.end(rng, "tflite", 0.02))
    rows.append(("mixed", mixed, ("weights", "v_heads"), apart))
    rows.append(("back", Transpose((0, 2, 1, 3)), ("mixed",), split))
    rows.append(("sum", layers.add(rng), ("x", "norm"), full))
    rows.append(("gelu", table(rng), ("sum",), full))
    rows.append(("out", norm(rng, width), ("gelu",), full))
    region = network({"x": full}, rows)
    return Region(region.symbol, region.tensors, ("x",), ("back", "out"), region.layers)


def decoder() -> Region:
    """Split, gate, transposed convolution, channels moved and back."""
    rng = np.random.default_rng(32)
    shape, half, big = (1, 6, 5, 36), (1, 6, 5, 18), (1, 12, 10, 11)
    weight = rng.integers(-128, 128, (11, 2, 2, 18)).astype(np.int8)
    bias = rng.integers(-999, 999, 11).astype(np.int32)
    up = ConvTranspose2d(weight, bias, 3, 0, layers.end(rng, "half_even", 0.003, 11), (2, 2))
    slopes = rng.uniform(0.01, 0.1, 11).astype(np.float32)
    leaky = PRelu(4, np.float32(0.07), slopes, np.float32(12), 3, -128, 127)
    return network(
        {"x": shape},
        [
            ("a", halves(shape, 0), ("x",), half),
            ("b", halves(shape, 1), ("x",), half),
            ("sigmoid", table(rng), ("b",), half),
            ("gate", Binary("multiply", 4, -9, layers.end(rng, "tflite", 0.01)),
             ("a", "sigmoid"), half),
            ("up", up, ("gate",), big),
            ("leaky", leaky, ("up",), big),
            ("moved", Transpose((0, 3, 1, 2)), ("leaky",), (1, 11, 12, 10)),
            ("pool", layers.pool("max", (2, 2), (1, 1)), ("moved",), (1, 10, 11, 10)),
            ("moved_back", Transpose((0, 2, 3, 1)), ("pool",), (1, 11, 10, 10)),
            ("out", layers.conv(rng, 10, 5), ("moved_back",), (1, 9, 8, 5)),
        ],
    )  # fmt: skip


def random_layer(rng: np.random.Generator, shape: Shape4) -> tuple[LayerOp, Shape4]:
    """One layer of one input, and the shape of its output."""
    channels = shape[3]
    slopes = rng.uniform(0.01, 0.1, channels).astype(np.float32)
    constant = rng.integers(-128, 128, (1, 1, 1, channels)).astype(np.int8)
    multiply = layers.end(rng, "tflite", 0.02)
    same: list[LayerOp] = [
        table(rng),
        Softmax(softmax_table(0.1)),
        norm(rng, channels),
        PRelu(4, np.float32(0.07), slopes, np.float32(12), 3, -128, 127),
        Binary("multiply", 3, 4, multiply, constant),
        replace(layers.add(rng), constant=constant),
        layers.pool("max", (3, 3), (1, 1), (1, 1, 1, 1)),
        layers.conv(rng, channels, channels, padding=(1, 1, 1, 1)),
        layers.conv(rng, channels, channels, depthwise=True, padding=(1, 1, 1, 1)),
        gathered(shape, rng.permutation(channels)),
    ]
    if rng.integers(4):
        return same[rng.integers(len(same))], shape
    axes = tuple(int(i) for i in rng.permutation(4))
    return Transpose(axes), tuple(shape[i] for i in axes)  # type: ignore[arg-type, return-value]


def gathered(shape: Shape4, channels: np.ndarray) -> Assemble:
    """Channels in another order."""
    whole = [np.arange(size, dtype=np.int32) for size in shape]
    take = (*whole[:3], channels.astype(np.int32))
    return Assemble((Piece(0, take, tuple(whole)),))  # type: ignore[arg-type]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda c: c.name)
def test_tables_of_independent_layers_equal_oracle(config: Config) -> None:
    """Nothing but the table orders these layers: a table is not replaced while it is in use."""
    rng, shape = np.random.default_rng(33), (1, 3, 4, 9)
    rows: list[Row] = [(f"t{i}", table(rng), ("x",), shape) for i in range(7)]
    check(network({"x": shape}, rows), config)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1 << 30),
    length=st.integers(2, 6),
    shape=st.tuples(*(st.integers(1, n) for n in (2, 9, 9, 40))),
    config=st.sampled_from([CONFIGS["edge8"], CONFIGS["base16"]]),
)
def test_random_chains_equal_oracle(seed: int, length: int, shape: Shape4, config: Config) -> None:
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    last, size = "x", shape
    for i in range(length):
        op, size = random_layer(rng, size)
        rows.append((f"t{i}", op, (last,), size))
        last = f"t{i}"
    check(network({"x": shape}, rows), config, few=True)


NETWORKS = {"attention": attention(20, 32, 2), "decoder": decoder()}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda c: c.name)
@pytest.mark.parametrize("case", NETWORKS)
def test_networks_of_all_families_equal_oracle(case: str, config: Config) -> None:
    check(NETWORKS[case], config)
