"""Pooling, clamps and data movement of the integer reference against PyTorch's qnnpack kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from accelsim.artifacts import SourceModel
from accelsim.quantize import quantize
from accelsim.reference import build, build_torch
from tests.reference import qnnpack
from tests.reference.qdq import op
from tests.reference.single import Input, layer, stored

functional = torch.nn.functional
WINDOWS = [
    ((2, 2), (2, 2), (0, 0)),
    ((3, 3), (2, 2), (1, 1)),
    ((3, 2), (1, 2), (1, 0)),
    ((5, 4), (3, 1), (2, 2)),
]


def pool(operator: Any, kernel: Any, stride: Any, padding: Any, **more: Any) -> Any:
    return lambda module, x: module.emit(
        operator(x, list(kernel), list(stride), [*padding, *padding], **more)
    )


@pytest.mark.parametrize(("kernel", "stride", "padding"), WINDOWS)
@pytest.mark.parametrize("zero", [0, 255, 131])
def test_average_pool_equals_qnnpack_with_padding_and_ties(
    kernel: Any, stride: Any, padding: Any, zero: int, seed: int
) -> None:
    rng = np.random.default_rng([seed, zero])
    shape, scale = (2, 9, 8, 7), np.float32(2.0 ** rng.uniform(-8, -1))
    operator = pool(op.nn.avg_pool2d, kernel, stride, padding, count_include_pad=True)
    run = layer("pool", [Input(shape, scale, zero)], operator, scale, zero)
    x = stored(rng, shape)
    golden = qnnpack.apply(
        functional.avg_pool2d, qnnpack.tensor(x, scale, zero), kernel, stride, padding
    )
    actual = run.run_layer("pool", (qnnpack.nhwc(x),))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(golden))


@pytest.mark.parametrize("extent", [(1, 1), (2, 2), (4, 4), (7, 7), (3, 10)])
@pytest.mark.parametrize("keep", [True, False])
def test_global_average_pool_equals_qnnpack(extent: tuple[int, int], keep: bool, seed: int) -> None:
    rng = np.random.default_rng([seed, *extent])
    shape, scale, zero = (1, 200, *extent), np.float32(2.0 ** rng.uniform(-8, -1)), 37
    x = np.clip(zero + rng.integers(-5, 6, shape), 0, 255).astype(np.uint8)
    run = layer(
        "pool",
        [Input(shape, scale, zero)],
        lambda module, v: module.emit(op.mean(v, [2, 3], keepdims=keep)),
        scale,
        zero,
    )
    golden = qnnpack.apply(functional.adaptive_avg_pool2d, qnnpack.tensor(x, scale, zero), 1)
    actual = run.run_layer("pool", (qnnpack.nhwc(x),))
    assert run.layers[0].op == "avg_pool2d"
    np.testing.assert_array_equal(actual, qnnpack.nhwc(golden))


def test_adaptive_pool_with_whole_windows_equals_qnnpack(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, scale, zero = (2, 5, 6, 8), np.float32(0.013), 250
    x = stored(rng, shape)
    run = layer(
        "pool",
        [Input(shape, scale, zero)],
        lambda module, v: module.emit(op.nn.adaptive_avg_pool2d(v, [3, 2])),
        scale,
        zero,
    )
    golden = qnnpack.apply(functional.adaptive_avg_pool2d, qnnpack.tensor(x, scale, zero), (3, 2))
    np.testing.assert_array_equal(run.run_layer("pool", (qnnpack.nhwc(x),)), qnnpack.nhwc(golden))


@pytest.mark.parametrize(("kernel", "stride", "padding"), WINDOWS)
def test_max_pool_equals_qnnpack_and_padding_never_wins(
    kernel: Any, stride: Any, padding: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape, scale, zero = (2, 9, 8, 7), np.float32(0.02), 200
    x = rng.integers(0, 60, shape).astype(np.uint8)  # all below the zero point
    operator = pool(op.nn.max_pool2d, kernel, stride, padding)
    run = layer("pool", [Input(shape, scale, zero)], operator, scale, zero)
    golden = qnnpack.apply(
        functional.max_pool2d, qnnpack.tensor(x, scale, zero), kernel, stride, padding
    )
    np.testing.assert_array_equal(run.run_layer("pool", (qnnpack.nhwc(x),)), qnnpack.nhwc(golden))


@pytest.mark.parametrize("zero", [0, 3, 120])
def test_relu6_limits_equal_qnnpack_over_every_value(zero: int) -> None:
    shape, scale = (1, 256), np.float32(0.0437)
    x = np.arange(256, dtype=np.uint8).reshape(shape)
    run = layer(
        "clip",
        [Input(shape, scale, zero)],
        lambda module, v: module.emit(op.clip(v, 0.0, 6.0)),
        scale,
        zero,
    )
    golden = qnnpack.apply(functional.relu6, qnnpack.tensor(x, scale, zero))
    assert run.layers[0].op == "clip"
    np.testing.assert_array_equal(run.run_layer("clip", (qnnpack.nhwc(x),)), qnnpack.nhwc(golden))


def test_flatten_follows_the_order_of_nchw(seed: int) -> None:
    shape, scale = (2, 3, 4, 5), np.float32(0.1)
    x = stored(np.random.default_rng(seed), shape)
    run = layer(
        "flatten",
        [Input(shape, scale, 9)],
        lambda module, v: module.emit(op.reshape(v, (2, 60))),
        scale,
        9,
    )
    assert run.layers[0].op == "reshape"
    actual = run.run_layer("flatten", (qnnpack.nhwc(x),))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(x.reshape(2, 60)))


def test_quantizer_limits_narrower_than_the_dtype_clamp(seed: int) -> None:
    shape, scale = (1, 256), np.float32(0.1)
    x = np.arange(256, dtype=np.uint8).reshape(shape)
    run = layer(
        "same",
        [Input(shape, scale, 9)],
        lambda module, v: module.emit(op.reshape(v, shape)),
        scale,
        9,
        limits=(10, 127),
    )
    actual = run.run_layer("same", (qnnpack.nhwc(x),))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(np.clip(x, 10, 127)))


def test_int8_activations_equal_uint8_ones_shifted_by_128(seed: int) -> None:
    shape = (1, 4, 6, 6)
    x = qnnpack.nhwc(stored(np.random.default_rng(seed), shape))
    operator = pool(op.nn.avg_pool2d, (3, 3), (1, 1), (1, 1), count_include_pad=True)
    scales = np.float32(0.1), np.float32(0.07)
    runs = [
        layer("pool", [Input(shape, scales[0], 9 - shift)], operator, scales[1], 77 - shift, **more)
        for shift, more in ((0, {"dtype": "uint8"}), (128, {"dtype": "int8"}))
    ]
    first, second = (run.run_layer("pool", (x,)) for run in runs)
    assert runs[1].network.tensors["pool"].stored == "int8"
    np.testing.assert_array_equal(first, second)


def test_change_of_scale_rounds_half_to_even() -> None:
    shape = (1, 256)
    x = np.arange(256, dtype=np.uint8).reshape(shape)
    run = layer(
        "wider",
        [Input(shape, np.float32(0.25), 128)],
        lambda module, v: module.emit(op.reshape(v, shape)),
        np.float32(0.5),
        128,
    )
    golden = np.rint((np.arange(256) - 128) / 2).astype(np.int8).reshape(1, 1, 1, 256)
    np.testing.assert_array_equal(run.run_layer("wider", (qnnpack.nhwc(x),)), golden)


@pytest.mark.parametrize(
    ("operator", "named"),
    [
        (
            pool(op.nn.avg_pool2d, (2, 2), (1, 1), (0, 0), dilation=[2, 2]),
            "avg_pool2d",
        ),
        (
            pool(op.nn.avg_pool2d, (2, 2), (2, 2), (0, 0), ceil_mode=True, count_include_pad=True),
            "avg_pool2d",
        ),
    ],
)
def test_pooling_without_an_exact_definition_is_the_hosts(operator: Any, named: str) -> None:
    run = layer("pool", [Input((1, 2, 5, 5), 0.1, 3)], operator, 0.1, 3)
    assert (run.layers[0].kind, run.layers[0].op) == ("host", named)


COUNTED = [  # kernel, stride, padding, ceil_mode
    ((2, 2), (1, 1), (1, 1), False),
    ((3, 2), (2, 3), (1, 0), True),
    ((2, 2), (2, 2), (0, 0), True),
]


@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil"), COUNTED)
def test_average_of_what_is_inside_equals_pytorch_floats(
    kernel: Any, stride: Any, padding: Any, ceil: bool, seed: int
) -> None:
    shape, zero = (2, 3, 7, 8), 77
    x = stored(np.random.default_rng(seed), shape)
    more = {"count_include_pad": False, "ceil_mode": ceil}
    operator = pool(op.nn.avg_pool2d, kernel, stride, padding, **more)
    run = layer("pool", [Input(shape, np.float32(0.1), zero)], operator, np.float32(0.0731), 100)
    reals = torch.from_numpy(x.astype(np.float64) - zero) * float(np.float32(0.1))
    means = functional.avg_pool2d(reals, kernel, stride, padding, **more).numpy()
    steps = np.clip(np.rint(means / float(np.float32(0.0731))) + 100, 0, 255).astype(np.uint8)
    assert run.layers[0].kind == "integer"
    np.testing.assert_array_equal(run.run_layer("pool", (qnnpack.nhwc(x),)), qnnpack.nhwc(steps))


REDUCTIONS = [  # operator, axes, its NumPy function
    (op.mean, [2], np.mean),
    (op.mean, [3], np.mean),
    (op.sum, [2, 3], np.sum),
    (op.max, [2, 3], np.max),
]


@pytest.mark.parametrize(("operator", "axes", "function"), REDUCTIONS)
def test_reductions_over_height_and_width_equal_numpy(
    operator: Any, axes: list[int], function: Any, seed: int
) -> None:
    shape, scale, zero = (2, 3, 5, 6), np.float32(0.1), 77
    x = stored(np.random.default_rng(seed), shape)
    largest = operator is op.max
    to, zero_to = (scale, zero) if largest else (np.float32(0.1731), 100)
    run = layer(
        "reduced",
        [Input(shape, scale, zero)],
        lambda module, v: module.emit(operator(v, axes, keepdims=True)),
        to,
        zero_to,
    )
    reals = (x.astype(np.float64) - zero) * float(scale)
    means = function(reals, axis=tuple(axes), keepdims=True)
    steps = np.clip(np.rint(means / float(to)) + zero_to, 0, 255).astype(np.uint8)
    assert run.layers[0].kind == "integer"
    actual = run.run_layer("reduced", (qnnpack.nhwc(x),))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(steps))


OVERHANG = [  # kernel, stride, padding, extents: over no, one or both edges; torch drops a window
    (3, 2, 0, (10, 11)),
    (3, 2, 1, (10, 10)),
    (2, 2, 0, (7, 7)),
    (2, 3, 1, (7, 6)),
    (2, 2, 1, (5, 6)),
    (3, 3, 1, (7, 8)),
]


@pytest.mark.parametrize(("kernel", "stride", "padding", "extents"), OVERHANG)
def test_max_pool_whose_last_windows_hang_over_equals_qnnpack(
    kernel: int, stride: int, padding: int, extents: tuple[int, int], seed: int
) -> None:
    shape = (1, 3, *extents)
    x = np.random.default_rng(seed).integers(-9, 60, shape).astype(np.float32)
    module = torch.nn.MaxPool2d(kernel, stride, padding, ceil_mode=True)
    source = SourceModel("pool", torch.nn.Sequential(module), (x,), ("x",), calibration=(x,))
    quantized = quantize(source)
    run = build(quantized)
    values = run.run(run.quantize_inputs({quantized.input_names[0]: x}))
    (only,) = run.layers
    assert only.kind == "integer"
    golden = values[only.inputs[0]].transpose(0, 3, 1, 2).astype(np.float32)
    expected = module(torch.from_numpy(golden)).numpy().transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(values[only.output], expected)
    for given in (quantized, replace(quantized, torch_int8=None)):
        kernels = build_torch(given, run.network)
        alone = kernels.run_layer(only.name, (values[only.inputs[0]],))
        np.testing.assert_array_equal(values[only.output], alone)
