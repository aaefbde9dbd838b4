"""Node tests of quantized operators.

What comes in: tests with 8-bit tensors, scales and zero points. What goes out: trials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelsim.artifacts import MatMul, Requantize
from accelsim.peers.case import Trial
from accelsim.peers.onnx_model import stored, stored_zero
from accelsim.peers.onnx_test import Array, NodeTest, four_axes, image, parallel, window
from accelsim.peers.shapes import convolution


def zero_point(values: Array) -> int:
    """The zero point of a tensor in the int8 domain."""
    return stored_zero(int(values.ravel()[0]), values.dtype)


def ends(test: NodeTest, scales: tuple[int, int, int], zero: int, channels: int = 1) -> Requantize:
    """Requantization by scales at input positions: of both operands and of the output."""
    a, b, y = (test.array(at).astype(np.float32) for at in scales)
    multiplier: Any = np.broadcast_to((a * b / y).ravel(), (channels,))
    return Requantize(np.ascontiguousarray(multiplier), zero, -128, 127)


def conv(test: NodeTest) -> Trial:
    """QLinearConv."""
    x, weight = stored(image(test.array(0))), stored(image(test.array(3)))
    golden = stored(image(test.outputs[0]))
    zx, zw, zy = (zero_point(test.array(at)) for at in (2, 5, 7))
    w = window(test, test.attributes.get("kernel_shape", weight.shape[1:3]), x.shape[1:3])
    bias = test.optional(8)
    requantize = ends(test, (1, 4, 6), zy, weight.shape[0])
    numbers = None if bias is None else bias.astype(np.int32)
    geometry = (w.stride, w.padding, w.dilation)
    op = convolution(weight, numbers, (zx, zw), requantize, x.shape[3], geometry)
    return parallel([{"x": x}], [(op, "x", golden)])


def matmul(test: NodeTest) -> Trial:
    """QLinearMatMul of two activations."""
    a, b = (stored(test.array(at)) for at in (0, 3))
    golden = stored(test.outputs[0])
    za, zb, zy = (zero_point(test.array(at)) for at in (2, 5, 7))
    op = MatMul(za, zb, False, ends(test, (1, 4, 6), zy))
    a, b, golden = (one.reshape(four_axes(one.shape)) for one in (a, b, golden))
    return parallel([{"x0": a, "x1": b}], [(op, "x", golden)])


QUANTIZED: dict[str, Callable[[NodeTest], Trial]] = {"QLinearConv": conv, "QLinearMatMul": matmul}
