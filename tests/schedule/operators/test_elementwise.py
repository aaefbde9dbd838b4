"""Sums, products, minima and maxima with broadcasting and constants; leaky rectifiers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import Add, Binary, Extremum, FixedAdd, PRelu, Region, Shape4, TfliteAdd
from accelsim.errors import ModelError
from accelsim.schedule import schedule
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CONFIGURATIONS = pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
FULL = (2, 9, 7, 21)
OTHERS: dict[str, Shape4] = {
    "same": FULL,
    "channels": (1, 1, 1, 21),
    "scalar": (1, 1, 1, 1),
    "pixels": (2, 9, 7, 1),
    "rows": (1, 9, 1, 21),
    "columns": (1, 1, 7, 21),
    "images": (2, 1, 1, 21),
    "one_image": (1, 9, 7, 21),
    "one_channel_of_columns": (1, 1, 7, 1),
}
T = TfliteAdd(1 << 30, 1717986918, 1288490189, 0, -1, -18)


def add(mode: str, **options: Any) -> Add:
    sums = {"fixed": {"fixed": FixedAdd(1 << 20, 3 << 20, 22)}, "tflite": {"tflite": T}}
    f32 = np.float32
    return Add(
        -7, 12, f32(0.05), f32(0.031), f32(9.7), 5, -120, 119, **sums.get(mode, {}), **options
    )


def pair(op: Any, a: Shape4, b: Shape4, constant: bool) -> Region:
    """The full shape from two inputs, or from one and a constant."""
    out = tuple(max(x, y) for x, y in zip(a, b, strict=True))
    if not constant:
        return layers.one(op, out, a, b)  # type: ignore[arg-type]
    values = layers.random_input(np.random.default_rng(9), b)
    return layers.one(replace(op, constant=values), out, a)  # type: ignore[arg-type]


@CONFIGURATIONS
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("mode", ["fp32", "fixed", "tflite"])
def test_sums_with_broadcasting_equal_oracle(mode: str, other: str, config: Config) -> None:
    op = add(mode, subtract=mode != "fixed")
    check(pair(op, FULL, OTHERS[other], constant=False), config)
    check(pair(add(mode), FULL, OTHERS[other], constant=True), config)
    check(pair(add(mode), OTHERS[other], FULL, constant=False), config)


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [(2, 9, 7, 21), (1, 1, 3, 100), (1, 40, 9, 2)], ids=str)
def test_sums_with_a_number_for_each_channel_equal_oracle(shape: Shape4, config: Config) -> None:
    rng = np.random.default_rng(4)
    signs = rng.integers(-1, 2, (1, 1, 1, shape[3])).astype(np.int8)
    scales = np.exp(rng.normal(0, 2, shape[3])).astype(np.float32)
    op = replace(add("fp32"), b_zero_point=0, constant=signs, b_scales=scales)
    check(layers.one(op, shape, shape), config)
    check(layers.one(replace(op, subtract=True), shape, shape), config)


def test_both_operands_may_be_broadcast() -> None:
    check(pair(add("fp32"), (1, 9, 1, 20), (2, 1, 7, 1), constant=False), EDGE8)


@CONFIGURATIONS
@pytest.mark.parametrize("mode", ["fp32", "tflite"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 1, 1, 1700), (3, 50, 9, 7)], ids=str)
def test_sums_of_other_sizes_equal_oracle(shape: Shape4, mode: str, config: Config) -> None:
    check(layers.one(add(mode), shape, shape, shape), config, few=shape == (1, 1, 1, 1))


@CONFIGURATIONS
@pytest.mark.parametrize("kind", ["multiply", "minimum", "maximum"])
@pytest.mark.parametrize("mode", layers.MODES)
@pytest.mark.parametrize("other", ["same", "channels", "scalar", "pixels", "columns"])
def test_binary_equals_oracle(kind: str, mode: str, other: str, config: Config) -> None:
    rng = np.random.default_rng(4)
    factor = 0.01 if kind == "multiply" else 0.8
    op = Binary(kind, -7, 100, layers.end(rng, mode, factor))
    check(pair(op, FULL, OTHERS[other], constant=False), config)
    each = replace(op, requantize=layers.end(rng, mode, factor, 21))
    check(pair(each, FULL, OTHERS[other], constant=True), config)


@CONFIGURATIONS
@pytest.mark.parametrize("mode", layers.MODES)
@pytest.mark.parametrize("other", ["same", "channels", "pixels"])
def test_operands_with_scales_of_their_own_equal_oracle(
    mode: str, other: str, config: Config
) -> None:
    rng = np.random.default_rng(8)
    ends = [layers.end(rng, mode, 0.8) for _ in range(3)]
    op = Binary("minimum", 0, 0, ends[0], None, ends[1], ends[2], -17, 4)
    check(pair(op, FULL, OTHERS[other], constant=False), config)
    check(pair(replace(op, a_requantize=None), FULL, OTHERS[other], constant=True), config)


@CONFIGURATIONS
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 9, 7, 21), (1, 30, 30, 90)], ids=str)
def test_leaky_rectifiers_equal_oracle(shape: Shape4, config: Config) -> None:
    rng = np.random.default_rng(3)
    slopes = rng.uniform(0.001, 0.2, shape[3]).astype(np.float32)
    for sign in (1, np.resize(np.float32([-1, 1, 0]), shape[3])):
        op = PRelu(11, np.float32(0.05), slopes * sign, np.float32(14), -30, -128, 120)
        check(layers.one(op, shape, shape), config, few=shape == (1, 1, 1, 1))


@CONFIGURATIONS
@pytest.mark.parametrize(
    ("shape", "kernel", "outputs", "adaptive"),
    [
        ((2, 9, 7, 21), (9, 7), (1, 1), False),
        ((1, 40, 41, 11), (40, 41), (1, 1), False),
        ((1, 11, 13, 70), (3, 2), (9, 12), False),
        ((1, 11, 13, 20), (4, 4), (4, 5), True),
    ],
)
@pytest.mark.parametrize("kind", ["min", "max"])
def test_extrema_behind_a_table_equal_oracle(
    kind: str,
    shape: Shape4,
    kernel: tuple[int, int],
    outputs: tuple[int, int],
    adaptive: bool,
    config: Config,
) -> None:
    table = np.random.default_rng(5).permutation(np.arange(-128, 128)).astype(np.int8)
    op = Extremum(kind, kernel, (1, 1), (0, 0, 0, 0), table, adaptive=adaptive)
    after = (shape[0], *outputs, shape[3])
    check(layers.one(op, after, shape), config, few=outputs == (1, 1) or adaptive)


def test_shapes_that_do_not_broadcast_are_refused_by_name() -> None:
    region = layers.one(add("fp32"), (1, 4, 4, 8), (1, 4, 4, 8), (1, 2, 4, 8))
    with pytest.raises(ModelError, match=r"layer t0: an operand of shape \(1, 2, 4, 8\) cannot"):
        schedule(region, EDGE8)


def test_a_scale_of_zero_is_refused_by_name() -> None:
    op = PRelu(0, np.float32(0), np.ones(8, np.float32), np.float32(14), 0, -128, 127)
    with pytest.raises(ModelError, match="layer t0: a multiplier is 0, the limits"):
        schedule(layers.one(op, (1, 2, 2, 8), (1, 2, 2, 8)), EDGE8)
