"""Channel axes of quantized tensors, read from small QDQ modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from accelsim.quantize.layouts import channel_axes, from_nhwc, nhwc_shape, to_nhwc

op = relax.op


class Graph:
    """A QDQ module under construction; every `quantized` value is a layer of that name."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        self.inputs = [
            relax.Var(f"x{i}", relax.TensorType(shape, "float32")) for i, shape in enumerate(shapes)
        ]
        self.builder = relax.BlockBuilder()
        self.bindings: list[Any] = []

    def emit(self, call: Any) -> Any:
        call = self.builder.normalize(call)
        self.bindings.append(relax.VarBinding(relax.Var(f"v{len(self.bindings)}", call.ty), call))
        return self.bindings[-1].var

    def quantized(self, name: str, value: Any) -> Any:
        scale, zero = relax.const(0.1, "float32"), relax.const(0, "int32")
        call = op.quantize(value, scale, zero, axis=0, out_dtype="int8")
        span = tvm.ir.Span(tvm.ir.SourceName(name), 0, 0, 0, 0)
        stored = self.emit(relax.Call(call.op, call.args, call.attrs, call.ty_args, span))
        return self.emit(op.dequantize(stored, scale, zero, axis=0))

    def axes(self) -> dict[str, int]:
        body = relax.SeqExpr([relax.BindingBlock(self.bindings)], self.bindings[-1].var)
        function = relax.Function(self.inputs, body, ret_ty=self.bindings[-1].var.ty)
        return channel_axes(tvm.IRModule({"main": function}))


def constant(*shape: int) -> Any:
    return relax.const(np.ones(shape, np.float32))


def test_a_convolution_puts_channels_second_through_everything_joined_to_it() -> None:
    g = Graph((1, 4, 6, 6))
    x = g.quantized("x", g.inputs[0])
    conv = g.quantized("conv", g.emit(op.nn.conv2d(x, constant(4, 4, 1, 1))))
    total = g.quantized("add", g.emit(op.add(conv, x)))
    g.quantized("act", g.emit(op.sigmoid(total)))
    assert g.axes() == {"x": 1, "conv": 1, "add": 1, "act": 1}


def test_attention_puts_channels_last() -> None:
    g = Graph((1, 2, 5, 8), (1, 2, 5, 8))
    q, k = g.quantized("q", g.inputs[0]), g.quantized("k", g.inputs[1])
    turned = g.quantized("turned", g.emit(op.permute_dims(k, [0, 1, 3, 2])))
    scores = g.quantized("scores", g.emit(op.matmul(q, turned)))
    g.quantized("softmax", g.emit(op.nn.softmax(scores, axis=-1)))
    assert g.axes() == {"q": 3, "k": 3, "turned": 3, "scores": 3, "softmax": 3}


def test_patches_become_rows_of_channels_without_moving() -> None:
    g = Graph((1, 3, 8, 8))
    x = g.quantized("x", g.inputs[0])
    conv = g.quantized("conv", g.emit(op.nn.conv2d(x, constant(16, 3, 4, 4), strides=4)))
    flat = g.quantized("flat", g.emit(op.reshape(conv, (1, 16, 4))))
    rows = g.quantized("rows", g.emit(op.permute_dims(flat, [0, 2, 1])))
    g.quantized("norm", g.emit(op.nn.layer_norm(rows, constant(16), constant(16), axes=[-1])))
    assert g.axes() == {"x": 1, "conv": 1, "flat": 1, "rows": 2, "norm": 2}


def test_three_axes_are_rows_of_channels_unless_a_convolution_reads_them() -> None:
    g = Graph((1, 5, 8))
    g.quantized("x", g.inputs[0])
    assert g.axes() == {"x": 2}
    g = Graph((1, 5, 8))
    x = g.quantized("x", g.inputs[0])
    g.quantized("conv", g.emit(op.nn.conv1d(x, constant(7, 5, 3))))
    assert g.axes() == {"x": 1, "conv": 1}


@pytest.mark.parametrize(
    ("shape", "axis", "expected"),
    [
        ((2, 3, 4, 5), 1, (2, 4, 5, 3)),
        ((2, 3, 4, 5), 3, (2, 3, 4, 5)),
        ((2, 3, 4), 1, (2, 1, 4, 3)),
        ((2, 3, 4), 2, (2, 1, 3, 4)),
        ((2, 3), 1, (2, 1, 1, 3)),
        ((7,), 0, (1, 1, 1, 7)),
        ((), 0, (1, 1, 1, 1)),
        ((2, 3, 4, 5, 6), 4, (2, 1, 60, 6)),
    ],
)
def test_arrays_turn_to_nhwc_and_back(
    shape: tuple[int, ...], axis: int, expected: tuple[int, ...]
) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    turned = to_nhwc(values, axis)
    assert turned.shape == nhwc_shape(shape, axis) == expected
    assert np.array_equal(from_nhwc(turned, shape, axis), values)
    if len(shape) == 4 and axis == 1:
        assert np.array_equal(turned, values.transpose(0, 2, 3, 1))
