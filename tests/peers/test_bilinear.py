"""Orders of float32 operations by which differences of resizes are explained are the peers' own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from accelsim.peers import qnnpack_draw
from accelsim.peers.bilinear import Upscale, onnxruntime_mixed, pytorch_mixed, upscale
from accelsim.peers.onnx_model import Step, nhwc, onnx_model, onnx_output

CASES = 40


def drawn(number: int, *modes: str) -> tuple[np.random.Generator, Upscale]:
    rng = np.random.default_rng(number)
    return rng, upscale(rng, modes)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
def test_onnxruntime_sums_four_products_from_left_to_right(mode: str) -> None:
    for number in range(CASES):
        rng, scale = drawn(number, mode)
        n, h, w, c = scale.shape
        x = rng.standard_normal((n, c, h, w)).astype(np.float32)
        sizes = np.array([n, c, *scale.target], np.int64)
        modes = {"mode": "linear", "coordinate_transformation_mode": mode}
        step = Step("Resize", ["x", "", "", "sizes"], attributes=modes)
        y = onnx_output(onnx_model([step], {"x": x}, {"sizes": sizes}, "float"), {"x": x})
        np.testing.assert_array_equal(onnxruntime_mixed(nhwc(x), scale), nhwc(y))


def resized(x: np.ndarray, zero: int, target: tuple[int, int], aligned: bool) -> Any:
    """PyTorch's quantized kernel."""
    stored = qnnpack_draw.quint8(x, np.float32(0.5), zero)
    resize: Any = torch.nn.functional.interpolate
    return resize(stored, size=target, mode="bilinear", align_corners=aligned)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners"])
def test_pytorch_mixes_columns_then_rows_of_stored_integers(mode: str) -> None:
    for number in range(CASES):
        rng, scale = drawn(number, mode)
        x = rng.integers(-128, 128, scale.shape).astype(np.int8)
        zero, aligned = int(rng.integers(-128, 128)), mode == "align_corners"
        kernel = partial(resized, x, zero, scale.target, aligned)
        offset = np.float32(zero + 128)
        mixed = pytorch_mixed(x.astype(np.int16) + 128, scale) - offset
        np.testing.assert_array_equal(np.rint(mixed + offset) - 128, qnnpack_draw.run(kernel))
