"""Layers in the rounding of TFLite and of ONNX Runtime, against definitions written in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from accelsim.artifacts import I8
from accelsim.reference import Reference
from accelsim.reference.graph import read_network
from accelsim.reference.integer import build_network
from accelsim.reference.multipliers import quantize_multiplier
from accelsim.spec import arithmetic
from tests.reference import affine_cases, qnnpack
from tests.reference.qdq import QdqModule, constant, op
from tests.reference.single import Input, layer, stored

BOTH = ("tflite", "onnxruntime")
ALL = np.arange(256, dtype=np.uint8).reshape(1, 256)


def words(real: Any) -> list[np.ndarray]:
    """Mantissas and shifts of doubles, as `QuantizeMultiplier` gives them."""
    pairs = [quantize_multiplier(float(one)) for one in np.atleast_1d(real)]
    return [np.array(column, np.int32) for column in zip(*pairs, strict=True)]


def accumulators(case: affine_cases.Case) -> np.ndarray:
    """(n, channels, …) int64 sums with their bias."""
    x = case.x.astype(np.int64) - case.x_zero
    zero = case.w_zero.reshape((-1,) + (1,) * (case.weight.ndim - 1))
    w = case.weight.astype(np.int64) - zero
    steps = case.bias / (np.float64(case.x_scale) * case.w_scale.astype(np.float64))
    bias = np.rint(steps).astype(np.int64)
    if case.kind == "linear":
        return x @ w.T + bias  # type: ignore[no-any-return]
    (top, left), (down, right) = case.padding, case.stride
    x = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
    windows = sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::down, ::right]
    if case.groups == 1:
        total = np.einsum("nchwij,ocij->nohw", windows, w)
    else:
        total = np.einsum("nchwij,cij->nchw", windows, w[:, 0])
    return total + bias.reshape(1, -1, 1, 1)  # type: ignore[no-any-return]


def expected(case: affine_cases.Case, rounding: str) -> I8:
    total = np.moveaxis(accumulators(case), 1, -1)
    if rounding == "onnxruntime":
        scaled = arithmetic.scale_fp32(total, (case.x_scale * case.w_scale) / case.scale)
    else:
        real = np.float64(case.x_scale) * case.w_scale.astype(np.float64) / np.float64(case.scale)
        mode = "half_away" if case.kind == "linear" else "tflite"
        scaled = arithmetic.scale(mode, total, *words(real))
    low = case.zero - 128 if case.relu else -128
    result: I8 = arithmetic.finish(scaled, case.zero - 128, low, 127)
    return result


@pytest.mark.parametrize("rounding", BOTH)
def test_random_convolutions_and_linears_equal_the_definition(rounding: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cases = [affine_cases.random_case(rng, index) for index in range(24)]
    network = read_network(affine_cases.module_of(cases), rounding=rounding)
    run = build_network(network, rounding)
    assert {case.kind for case in cases} == {"conv2d", "depthwise", "linear"}
    for case in cases:
        actual = run.run_layer(case.name, (qnnpack.nhwc(case.x),))
        golden = expected(case, rounding).reshape(actual.shape)
        np.testing.assert_array_equal(actual, golden, err_msg=str(case))


@pytest.mark.parametrize("rounding", [*BOTH, "qnnpack"])
def test_bias_stored_in_integers_is_taken_as_it_is(rounding: str) -> None:
    """Beyond 2^24, where a float32 bias would have lost its low bits."""
    bias = np.array([(1 << 24) + 1, -(1 << 25) - 3, 5, 0], np.int32)
    scale = np.float32(2.0**-4)
    module = QdqModule(x=(1, 1))
    source = module.quantize(module.inputs[0], "in", scale, 7)
    weight = module.weight(np.zeros((4, 1), np.int8), np.full(1, scale), np.zeros(1, np.int64))
    product = module.emit(
        op.matmul(module.dequantize(source), module.emit(op.permute_dims(weight)))
    )
    steps = module.emit(
        op.dequantize(
            constant(bias, "int32"),
            constant(scale * scale, "float32"),
            constant(0, "int32"),
            axis=0,
        )
    )
    value = module.emit(op.add(product, steps))
    out = module.quantize(value, "fc", np.float32(2.0**12), 128)
    built = module.module(module.dequantize(out))
    network = read_network(built, rounding=rounding)
    np.testing.assert_array_equal(network.layers[0].core.integer_bias, bias)
    actual = build_network(network, rounding).run_layer("fc", (np.full((1, 1, 1, 1), 3, np.int8),))
    np.testing.assert_array_equal(actual.ravel(), [16, -32, 0, 0])


def pair(run: Reference, name: str, shape: tuple[int, ...]) -> tuple[np.ndarray, I8]:
    """All pairs of operands, (2, …), and a sum's output in the order of NCHW."""
    grids = np.stack(np.meshgrid(range(256), range(256))).astype(np.int64)
    given = tuple(qnnpack.nhwc(grid.reshape(shape).astype(np.uint8)) for grid in grids)
    return grids, run.run_layer(name, given).transpose(0, 3, 1, 2).reshape(256, 256)


@pytest.mark.parametrize("index", range(4))
def test_every_pair_of_operands_is_added_as_tflite_does(index: int, seed: int) -> None:
    rng = np.random.default_rng([seed, index])
    scales = [np.float32(2.0 ** rng.uniform(-6, -1)) for _ in range(3)]
    if index == 0:  # every second sum is a tie
        scales = [np.float32(0.25), np.float32(0.25), np.float32(0.5)]
    shape, zeros = (1, 256, 1, 256), [int(zero) for zero in rng.integers(0, 256, 3)]
    inputs = [Input(shape, scale, zero) for scale, zero in zip(scales, zeros[:2], strict=False)]
    operator = lambda module, a, b: module.emit(op.add(a, b))  # noqa: E731
    run = layer("add", inputs, operator, scales[2], zeros[2], "tflite")
    (a, b), actual = pair(run, "add", shape)
    twice = 2 * float(max(scales[:2]))
    reals = [float(scales[0]) / twice, float(scales[1]) / twice]
    mantissas, shifts = words([*reals, twice / (2.0**20 * float(scales[2]))])
    scaled = arithmetic.add_tflite(a - zeros[0], b - zeros[1], (*mantissas, *shifts))
    golden = arithmetic.finish(scaled, zeros[2] - 128, -128, 127)
    np.testing.assert_array_equal(actual, golden)
    assert np.unique(golden).size >= 40


@pytest.mark.parametrize("rounding", BOTH)
@pytest.mark.parametrize("relu", [False, True])
def test_change_of_scale_equals_the_definition_for_every_value(
    rounding: str, relu: bool, seed: int
) -> None:
    rng = np.random.default_rng([seed, relu])
    for _ in range(8):
        source, target = (np.float32(2.0 ** rng.uniform(-6, -3)) for _ in range(2))
        operator = lambda m, v: m.emit(op.nn.relu(v) if relu else op.reshape(v, (1, 256)))  # noqa: E731
        run = layer("wider", [Input((1, 256), source, 100)], operator, target, 90, rounding)
        centred = np.arange(256, dtype=np.int64) - 100
        if rounding == "tflite":
            real = float(source / target) if relu else float(source) / float(target)
            scaled = arithmetic.scale("tflite", centred, *words(real))
        else:
            scaled = np.rint(centred.astype(np.float32) * source / target).astype(np.int64)
        golden = arithmetic.finish(scaled, -38, -38 if relu else -128, 127)
        actual = run.run_layer("wider", (qnnpack.nhwc(ALL),)).ravel()
        np.testing.assert_array_equal(actual, golden)


POOLS = [  # kernel, stride, padding (top, left, bottom, right), ceil
    ((2, 2), (2, 2), (0, 0, 0, 0), False),
    ((3, 3), (2, 2), (1, 1, 1, 1), False),
    ((3, 2), (1, 2), (0, 1, 2, 0), False),
    ((3, 3), (2, 2), (0, 0, 1, 1), True),
]


@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil"), POOLS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_average_of_tflite_divides_by_the_elements_inside(
    kernel: Any, stride: Any, padding: Any, ceil: bool, dtype: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape, zero = (2, 5, 8, 7), 3 if dtype == "int8" else 131
    operator = lambda module, x: module.emit(  # noqa: E731
        op.nn.avg_pool2d(x, kernel, stride, padding, ceil_mode=ceil, count_include_pad=False)
    )
    run = layer("pool", [Input(shape, 0.1, zero)], operator, 0.1, zero, "tflite", dtype=dtype)
    assert run.layers[0].kind == "integer"
    offset = 128 if dtype == "uint8" else 0
    x = rng.integers(-3, 4, shape) + offset  # ties on both sides of the stored zero
    actual = run.run_layer("pool", ((x - offset).astype(np.int8).transpose(0, 2, 3, 1),))
    golden = np.empty_like(actual, dtype=np.int64)
    for row, column in np.ndindex(*actual.shape[1:3]):
        top, left = row * stride[0] - padding[0], column * stride[1] - padding[1]
        inside = x[:, :, max(top, 0) : top + kernel[0], max(left, 0) : left + kernel[1]]
        count = np.array(inside.shape[2] * inside.shape[3])
        golden[:, row, column] = arithmetic.divide_half_away(inside.sum((2, 3)), count) - offset
    np.testing.assert_array_equal(actual, golden)


def test_average_that_counts_padding_is_not_tflites() -> None:
    operator = lambda module, x: module.emit(  # noqa: E731
        op.nn.avg_pool2d(x, (2, 2), (2, 2), (1, 1, 1, 1), count_include_pad=True)
    )
    for scale, rounding, kind in ((0.1, "tflite", "host"), (0.1, "fp32", "integer")):
        run = layer("pool", [Input((1, 2, 4, 4), 0.1, 3)], operator, scale, 3, rounding)
        assert run.layers[0].kind == kind


@pytest.mark.parametrize("rounding", BOTH)
@pytest.mark.parametrize("extent", [(7, 7), (4, 8), (3, 5)])
def test_mean_equals_the_definition(rounding: str, extent: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng([seed, *extent])
    shape, count = (1, 300, *extent), extent[0] * extent[1]
    source, target = np.float32(0.05), np.float32(2.0 ** rng.uniform(-5, -4))
    operator = lambda module, x: module.emit(op.mean(x, [2, 3]))  # noqa: E731
    run = layer("mean", [Input(shape, source, 17)], operator, target, 99, rounding)
    x = stored(rng, shape)
    total = (x.astype(np.int64) - 17).sum((2, 3))
    if rounding == "tflite":
        mantissa, shift = quantize_multiplier(float(source) / float(target))
        places = int(np.log2(count))
        pair = np.array([(mantissa << places) // count]), np.array([shift - places])
        scaled = arithmetic.scale("tflite", total, *pair)
    else:
        multiplier = np.asarray(source / (target * np.float32(count)))
        scaled = arithmetic.scale_fp32(total, multiplier)
    golden = arithmetic.finish(scaled, 99 - 128, -128, 127)
    actual = run.run_layer("mean", (qnnpack.nhwc(x),))
    np.testing.assert_array_equal(actual.ravel(), golden.ravel())


@pytest.mark.parametrize(("rounding", "level"), [("tflite", 3), ("onnxruntime", 2), ("fp32", 2)])
def test_limit_between_two_levels_is_rounded_as_the_framework_does(
    rounding: str, level: int
) -> None:
    operator = lambda module, x: module.emit(op.clip(x, -6.0, 2.5))  # noqa: E731
    run = layer("clip", [Input((1, 256), 1.0, 128)], operator, 1.0, 128, rounding)
    assert run.run_layer("clip", (qnnpack.nhwc(ALL),)).max() == level
