"""Products of two activations, and transposed convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import ConvTranspose2d, MatMul, Region, Shape4
from accelsim.errors import ModelError
from accelsim.schedule import schedule
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CONFIGURATIONS = pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
# rows, k, columns
PRODUCTS = [(1, 1, 1), (5, 7, 9), (9, 8, 16), (17, 15, 33), (40, 100, 70), (3, 300, 5), (130, 9, 3)]


def product(
    sizes: tuple[int, int, int],
    transpose_b: bool,
    mode: str = "fp32",
    batch: tuple[int, int] = (1, 1),
    b_batch: tuple[int, int] | None = None,
) -> Region:
    rows, k, columns = sizes
    rng = np.random.default_rng(rows)
    op = MatMul(-7, 100, transpose_b, layers.end(rng, mode, 0.02 / np.sqrt(k)))
    b = (columns, k) if transpose_b else (k, columns)
    shapes = (*batch, rows, k), (*(b_batch or batch), *b)
    return layers.one(op, (*batch, rows, columns), *shapes)  # type: ignore[arg-type]


@CONFIGURATIONS
@pytest.mark.parametrize("transpose_b", [False, True], ids=["natural", "transposed"])
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_products_of_activations_equal_oracle(
    sizes: tuple[int, int, int], transpose_b: bool, config: Config
) -> None:
    check(product(sizes, transpose_b), config, few=sizes == (1, 1, 1))


@CONFIGURATIONS
@pytest.mark.parametrize("transpose_b", [False, True], ids=["natural", "transposed"])
@pytest.mark.parametrize("b_batch", [(2, 3), (1, 3), (2, 1), (1, 1)], ids=str)
def test_batched_products_equal_oracle(
    b_batch: tuple[int, int], transpose_b: bool, config: Config
) -> None:
    for mode in ("fp32", "tflite"):
        check(product((9, 20, 11), transpose_b, mode, (2, 3), b_batch), config)


def test_shapes_that_are_no_product_are_refused_by_name() -> None:
    op = MatMul(0, 0, False, layers.end(np.random.default_rng(1), "fp32", 0.01))
    region = layers.one(op, (1, 1, 5, 6), (1, 1, 5, 7), (1, 1, 8, 6))
    with pytest.raises(ModelError, match=r"layer t0: \(1, 1, 5, 7\) by \(1, 1, 8, 6\) is no"):
        schedule(region, EDGE8)


def transposed(shape: Shape4, out: int, kernel: tuple[int, int], **options: Any) -> Region:
    rng = np.random.default_rng(3)
    stride = options.get("stride", (1, 1))
    dilation, padding = options.get("dilation", (1, 1)), options.get("padding", (0, 0))
    size = [
        (n - 1) * s + (k - 1) * d + 1 - 2 * p + options.get("extra", 0)
        for n, s, k, d, p in zip(shape[1:3], stride, kernel, dilation, padding, strict=True)
    ]
    weight = rng.integers(-128, 128, (out, *kernel, shape[3])).astype(np.int8)
    bias = rng.integers(-2000, 2000, out).astype(np.int32)
    end = layers.end(rng, options.get("mode", "fp32"), 0.003, out)
    op = ConvTranspose2d(weight, bias, 9, options.get("zero", 0), end, stride, padding, dilation)
    return layers.one(op, (shape[0], size[0], size[1], out), shape)


TRANSPOSED = {
    "stride_1": transposed((1, 5, 6, 9), 7, (3, 3), padding=(1, 1)),
    "stride_2": transposed((2, 5, 6, 9), 17, (3, 3), stride=(2, 2), padding=(1, 1), extra=1),
    "kernel_2_stride_2": transposed((1, 7, 4, 16), 8, (2, 2), stride=(2, 2), mode="tflite"),
    "kernel_4_stride_2": transposed((1, 6, 6, 20), 9, (4, 4), stride=(2, 2), padding=(1, 1)),
    "stride_beyond_the_kernel": transposed((1, 4, 3, 5), 9, (2, 1), stride=(3, 2), zero=-5),
    "dilation": transposed((1, 5, 5, 8), 3, (3, 2), stride=(2, 3), dilation=(3, 2)),
    "dilation_and_stride_with_common_factor": transposed(
        (1, 5, 5, 8), 3, (3, 3), stride=(2, 4), dilation=(4, 2)
    ),
    "one_pixel": transposed((1, 1, 1, 30), 12, (4, 4)),
    "one_channel": transposed((1, 4, 5, 1), 1, (3, 3), stride=(2, 2)),
    "large": transposed((1, 20, 21, 33), 20, (3, 3), stride=(2, 2), padding=(1, 1), extra=1),
    "wide_padding": transposed((1, 4, 4, 8), 8, (5, 5), stride=(2, 2), padding=(4, 3)),
}


@CONFIGURATIONS
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution_equals_oracle(case: str, config: Config) -> None:
    check(TRANSPOSED[case], config)
