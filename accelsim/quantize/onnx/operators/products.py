"""Products of matrices: MatMul, Gemm, and their quantized forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Stored, Weight, number, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of
from accelsim.quantize.onnx.operators.convolution import biased, integer_bias

op = relax.op


def multiplied(g: Emitter, a: Any, b: Any, turned: bool = False) -> Any:
    """a · b of an emitted operand and a value; a matrix of weights lies (out, in).

    `turned` where the second one is (out, in) already.
    """
    if isinstance(b, Weight) and b.values.ndim == 2:
        axis = b.levels.axis % 2
        stored = b if turned else Weight(b.values.T, replace(b.levels, axis=1 - axis))
        return g.emit(op.matmul(a, g.emit(op.permute_dims(g.operand(stored)))))
    right = g.operand(b)
    if turned:
        right = g.emit(op.permute_dims(right))
    return g.emit(op.matmul(a, right))


def matmul(g: Emitter, node: OnnxNode) -> Any:
    """MatMul."""
    return multiplied(g, g.real(node.input(0)), g.value(node.input(1)))


def gemm(g: Emitter, node: OnnxNode) -> Any:
    """alpha · A · B + beta · C."""
    a = g.real(node.input(0))
    if node.attributes.get("transA", 0):
        a = g.emit(op.permute_dims(a))
    turned = bool(node.attributes.get("transB", 0))
    value = multiplied(g, a, g.value(node.input(1)), turned)
    value = _scaled(g, value, node.attributes.get("alpha", 1.0))
    beta = float(node.attributes.get("beta", 1.0))
    if not node.input(2) or beta == 0.0:
        return value
    bias = g.value(node.input(2))
    if isinstance(bias, np.ndarray) and beta != 1.0:
        bias, beta = (bias * np.float32(beta)).astype(np.float32), 1.0
    shape = bias.values.shape if isinstance(bias, Weight) else getattr(bias, "shape", None)
    columns = shape_of(value)[-1]
    if (
        beta == 1.0
        and isinstance(bias, np.ndarray | Weight)
        and shape in ((columns,), (1, columns))
    ):
        return biased(g, value, bias, 1)
    return g.emit(op.add(value, _scaled(g, g.operand(bias), beta)))


def _scaled(g: Emitter, value: Any, factor: float) -> Any:
    if factor == 1.0:
        return value
    return g.emit(op.multiply(value, number(factor)))


def qlinear_matmul(g: Emitter, node: OnnxNode) -> Any:
    """QLinearMatMul: each operand with its levels, then those of the output."""
    a = integers(g, node.input(0), *node.inputs[1:3])
    b = integers(g, node.input(3), *node.inputs[4:6], axis=-1)
    if isinstance(b, Weight):
        b = replace(b, levels=replace(b.levels, axis=b.values.ndim - 1))
    value = multiplied(g, g.operand(a), b)
    return g.quantize(value, levels_of(g, *node.inputs[6:8]))


def qgemm(g: Emitter, node: OnnxNode) -> Any:
    """QGemm: A and B with their levels, an int32 bias, and the output's levels, if any."""
    turned = bool(node.attributes.get("transB", 0))
    alpha = float(node.attributes.get("alpha", 1.0))
    a = integers(g, node.input(0), *node.inputs[1:3])
    b = integers(g, node.input(3), *node.inputs[4:6], axis=0 if turned else 1)
    if not isinstance(b, Weight) or not isinstance(a, Stored):
        raise g.fail("multiplies other than an activation with constant weights")
    if alpha != 1.0:  # a factor of the weights' scale, as ONNX Runtime has it
        scale = (b.levels.scale * np.float32(alpha)).astype(np.float32)
        b = replace(b, levels=replace(b.levels, scale=scale))
    left = g.operand(a)
    if node.attributes.get("transA", 0):
        left = g.emit(op.permute_dims(left))
    value = multiplied(g, left, b, turned)
    bias = integer_bias(g, node.input(6), a, b)
    if bias is not None:
        value = biased(g, value, bias, 1)
    if not node.input(7):
        return value
    return g.quantize(value, levels_of(g, node.input(7), node.input(8), _kind(a)))


def _kind(a: Stored) -> str:
    return str(a.var.ty.dtype)


CONVERTERS = {
    "MatMul": matmul,
    "Gemm": gemm,
    "QLinearMatMul": qlinear_matmul,
    "com.microsoft:QGemm": qgemm,
}
