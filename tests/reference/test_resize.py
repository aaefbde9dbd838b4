"""Bilinear resizes of the integer reference against PyTorch's quantized kernel."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from accelsim.reference.operators.resize import _matrix
from tests.reference import qnnpack
from tests.reference.qdq import op
from tests.reference.single import Input, layer, stored

functional = torch.nn.functional


def resize(target: tuple[int, int], mode: str, layout: str = "NCHW") -> Any:
    return lambda module, x: module.emit(
        op.image.resize2d(
            x, target, layout=layout, method="linear", coordinate_transformation_mode=mode
        )
    )


@pytest.mark.parametrize(
    ("target", "mode"),
    [
        ((10, 12), "half_pixel"),
        ((15, 18), "half_pixel"),
        ((20, 48), "half_pixel"),
        ((5, 3), "half_pixel"),
        ((9, 11), "align_corners"),
        ((10, 12), "align_corners"),
    ],
)
@pytest.mark.parametrize("zero", [0, 255, 131])
@pytest.mark.parametrize("rounding", ["fp32", "qnnpack"])
def test_weights_that_float32_holds_equal_pytorch_with_ties(
    target: tuple[int, int], mode: str, zero: int, rounding: str, seed: int
) -> None:
    rng = np.random.default_rng([seed, zero])
    shape, scale = (2, 7, 5, 6), np.float32(2.0 ** rng.uniform(-8, -1))
    run = layer("y", [Input(shape, scale, zero)], resize(target, mode), scale, zero, rounding)
    x = stored(rng, shape)
    kernel = partial(
        functional.interpolate,
        size=target,
        mode="bilinear",
        align_corners=mode == "align_corners",
    )
    golden = qnnpack.apply(kernel, qnnpack.tensor(x, scale, zero))
    actual = run.run_layer("y", (qnnpack.nhwc(x),))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(golden))
    assert run.network.layer("y").family == "resize"


def test_channels_last_is_the_same_map(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = stored(rng, (1, 7, 5, 6))
    first = layer("y", [Input(x.shape, 0.1, 3)], resize((10, 12), "half_pixel"), 0.2, 9)
    shape = (1, 5, 6, 7)
    last = layer("y", [Input(shape, 0.1, 3)], resize((10, 12), "half_pixel", "NHWC"), 0.2, 9)
    inputs = (qnnpack.nhwc(x),)
    np.testing.assert_array_equal(first.run_layer("y", inputs), last.run_layer("y", inputs))


def test_onnxruntime_rounds_reals_half_to_even_before_the_zero_point() -> None:
    """(0 + 1) / 2 is 1/2 above the zero point 0, and 1/2 below the zero point 1."""
    x = np.tile(np.array([0, 1], np.uint8), (1, 1, 4, 1))
    found = {}
    for zero in (0, 1):
        run = layer(
            *("y", [Input(x.shape, 1.0, zero)], resize((4, 3), "align_corners")),
            *(1.0, zero, "onnxruntime"),
        )
        found[zero] = int(run.run_layer("y", (qnnpack.nhwc(x),))[0, 0, 1, 0]) + 128
    assert found == {0: 0, 1: 1}


@pytest.mark.parametrize(("unit", "expected"), [(0, [[3, 1], [1, 3]]), (1024, [[3, 1], [1, 3]])])
def test_a_matrix_has_the_smallest_whole_weights(unit: int, expected: list[list[int]]) -> None:
    matrix = _matrix(2, 4, "half_pixel", unit)
    assert matrix is not None and matrix[1:3].tolist() == expected
