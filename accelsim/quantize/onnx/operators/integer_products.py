"""Products of integers that give int32, as dynamic quantization has them: on the host.

Their scale is known only at run time, so nothing says what 8-bit result they are to have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Stored, constant, dtype_of, shape_of
from accelsim.quantize.onnx.operators.convolution import axes_of, padding_of, window_rank
from accelsim.quantize.onnx.operators.quantization import dynamic_quantize

op = relax.op


def centred(g: Emitter, name: str, zero: str, axis: int) -> Any:
    """Integers less their zero point, int32; a vector of zero points lies along `axis`."""
    value = g.value(name)
    if isinstance(value, np.ndarray):
        if value.dtype.itemsize != 1:
            raise g.fail(f"multiplies {value.dtype} numbers; int8 or uint8 are due")
        zeros = g.numbers(zero, "zero points") if zero else np.zeros((), np.int32)
        if zeros.size > 1:
            shape = [1] * value.ndim
            shape[axis] = -1
            zeros = zeros.reshape(shape)
        else:
            zeros = zeros.reshape(())
        return constant(value.astype(np.int32) - zeros.astype(np.int32))
    stored = value.var if isinstance(value, Stored) else g.operand(value)
    if dtype_of(stored) not in ("int8", "uint8"):
        raise g.fail(f"multiplies {dtype_of(stored)} numbers; int8 or uint8 are due")
    wide = g.emit(op.astype(stored, "int32"))
    if not zero:
        return wide
    return g.emit(op.subtract(wide, g.emit(op.astype(g.real(zero), "int32"))))


def matmul_integer(g: Emitter, node: OnnxNode) -> Any:
    """MatMulInteger."""
    a = centred(g, node.input(0), node.input(2), -2)
    b = centred(g, node.input(1), node.input(3), -1)
    return g.emit(op.matmul(a, b, out_dtype="int32"))


def conv_integer(g: Emitter, node: OnnxNode) -> Any:
    """ConvInteger."""
    x = centred(g, node.input(0), node.input(2), 1)
    weight = centred(g, node.input(1), node.input(3), 0)
    rank = window_rank(g, shape_of(x))
    function = op.nn.conv2d if rank == 2 else op.nn.conv1d
    return g.emit(
        function(
            x,
            weight,
            strides=axes_of(g, node, "strides", rank),
            padding=padding_of(g, node, shape_of(x)[2:], shape_of(weight)[2:]),
            dilation=axes_of(g, node, "dilations", rank),
            groups=int(node.attributes.get("group", 1)),
            out_dtype="int32",
        )
    )


def matmul_integer_to_float(g: Emitter, node: OnnxNode) -> Any:
    """MatMulIntegerToFloat: A, B, their scales and zero points, a bias."""
    a = centred(g, node.input(0), node.input(4), -2)
    b = centred(g, node.input(1), node.input(5), -1)
    scale = g.emit(op.multiply(g.real(node.input(2)), g.real(node.input(3))))
    return _scaled(g, a, b, scale, node.input(6))


def dynamic_quantize_matmul(g: Emitter, node: OnnxNode) -> Any:
    """DynamicQuantizeMatMul: real A, B with scale and zero point, a bias."""
    stored, scale, zero = dynamic_quantize(g, g.real(node.input(0)))
    wide = g.emit(op.astype(stored, "int32"))
    a = g.emit(op.subtract(wide, g.emit(op.astype(zero, "int32"))))
    b = centred(g, node.input(1), node.input(3), -1)
    both = g.emit(op.multiply(scale, g.real(node.input(2))))
    return _scaled(g, a, b, both, node.input(4))


def _scaled(g: Emitter, a: Any, b: Any, scale: Any, bias: str) -> Any:
    product = g.emit(op.astype(g.emit(op.matmul(a, b, out_dtype="int32")), "float32"))
    value = g.emit(op.multiply(product, scale))
    return g.emit(op.add(value, g.real(bias))) if bias else value


def dynamic_quantize_linear(g: Emitter, node: OnnxNode) -> tuple[Any, Any, Any]:
    """DynamicQuantizeLinear."""
    return dynamic_quantize(g, g.real(node.input(0)))


CONVERTERS = {
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
    "com.microsoft:MatMulIntegerToFloat": matmul_integer_to_float,
    "com.microsoft:DynamicQuantizeMatMul": dynamic_quantize_matmul,
}
