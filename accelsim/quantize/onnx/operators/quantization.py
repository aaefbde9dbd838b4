"""QuantizeLinear and DequantizeLinear, with levels in the file or known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Lazy, Levels, Stored, Weight, number
from accelsim.quantize.onnx.levels import integers, levels_of

op = relax.op


def quantize_linear(g: Emitter, node: OnnxNode) -> Any:
    """Real numbers → an activation; a constant is quantized here."""
    scale, zero = node.input(1), node.input(2)
    _refuse_wide(g, node)
    if g.known(scale) is None:
        return _at_run_time(g, node)
    kind = _output_dtype(node)
    axis = node.attributes.get("axis", 1)
    levels = levels_of(g, scale, zero, kind, axis=axis)
    value = g.value(node.input(0))
    if isinstance(value, np.ndarray):
        return quantized_constant(value, levels)
    return g.quantize(g.operand(value), levels)


def quantized_constant(values: np.ndarray[Any, Any], levels: Levels) -> np.ndarray[Any, Any]:
    """rint(x / scale) + zero point, clipped, in float32."""
    shape = [1] * values.ndim
    if levels.scale.size > 1:
        shape[levels.axis] = -1
    scale, zero = levels.scale.reshape(shape), levels.zero.reshape(shape)
    limits = np.iinfo(levels.dtype)
    steps = np.rint(values.astype(np.float32) / scale) + zero
    return np.asarray(np.clip(steps, limits.min, limits.max), levels.dtype)


def _output_dtype(node: OnnxNode) -> str | None:
    kinds = {2: "uint8", 3: "int8"}
    return kinds.get(node.attributes.get("output_dtype", 0))


def _refuse_wide(g: Emitter, node: OnnxNode) -> None:
    """Other than 8 bits, whether a zero point says so or an attribute."""
    zero = g.values.get(node.input(2)) if node.input(2) else None
    kind = str(zero.dtype) if isinstance(zero, np.ndarray) else ""
    wide = node.attributes.get("output_dtype", 0) not in (0, 2, 3)
    if wide or kind not in ("", "int8", "uint8"):
        found = kind or f"element type {node.attributes['output_dtype']}"
        raise g.fail(f"quantizes to {found}; accelsim runs int8 and uint8: quantize to these")


def _at_run_time(g: Emitter, node: OnnxNode) -> Any:
    """A scale that is computed: the host divides, rounds and clips in float32."""
    x, scale = g.real(node.input(0)), g.real(node.input(1))
    steps = g.emit(op.round(g.emit(op.divide(x, scale))))
    kind = "uint8"
    if node.input(2):
        zero = g.real(node.input(2))
        kind = str(zero.ty.dtype)
        steps = g.emit(op.add(steps, g.emit(op.astype(zero, "float32"))))
    limits = np.iinfo(kind)
    clipped = g.emit(op.clip(steps, float(limits.min), float(limits.max)))
    return g.emit(op.astype(clipped, kind))


def dequantize_linear(g: Emitter, node: OnnxNode) -> Any:
    """Integers → real numbers, for each consumer anew."""
    scale, zero = node.input(1), node.input(2)
    value = g.value(node.input(0))
    if isinstance(value, np.ndarray) and value.dtype.name not in ("int8", "uint8", "int32"):
        raise g.fail(
            f"reads {value.dtype} numbers; quantized tensors must be int8 or uint8, biases int32"
        )
    if g.known(scale) is None or not isinstance(value, np.ndarray | Stored):
        return _real_at_run_time(g, node)
    found = integers(g, node.input(0), scale, zero, axis=node.attributes.get("axis", 1))
    if isinstance(found, Weight):
        return found
    return Lazy(lambda: g.operand(found), node)


def _real_at_run_time(g: Emitter, node: OnnxNode) -> Any:
    """(q - zero point) · scale in float32 on the host."""
    value = g.value(node.input(0))
    x = value.var if isinstance(value, Stored) else g.operand(value)
    if not str(x.ty.dtype).lstrip("u").startswith("int"):
        raise g.fail("dequantizes numbers that are no integers")
    centred = g.emit(op.astype(x, "float32"))
    if node.input(2):
        zero = g.emit(op.astype(g.real(node.input(2)), "float32"))
        centred = g.emit(op.subtract(centred, zero))
    return g.emit(op.multiply(centred, g.real(node.input(1))))


def dynamic_quantize(g: Emitter, x: Any) -> tuple[Any, Any, Any]:
    """uint8 integers with the scale and zero point of the values at hand, on the host."""
    zero_f = number(0.0)
    least = g.emit(op.minimum(g.emit(op.min(x)), zero_f))
    most = g.emit(op.maximum(g.emit(op.max(x)), zero_f))
    span = g.emit(op.subtract(most, least))
    scale = g.emit(op.divide(span, number(255.0)))
    place = g.emit(op.round(g.emit(op.divide(g.emit(op.negative(least)), scale))))
    zero = g.emit(op.clip(place, 0.0, 255.0))
    steps = g.emit(op.add(g.emit(op.round(g.emit(op.divide(x, scale)))), zero))
    stored = g.emit(op.astype(g.emit(op.clip(steps, 0.0, 255.0)), "uint8"))
    return stored, scale, g.emit(op.astype(zero, "uint8"))


CONVERTERS = {
    "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear,
    "com.microsoft:QuantizeLinear": quantize_linear,
    "com.microsoft:DequantizeLinear": dequantize_linear,
}
