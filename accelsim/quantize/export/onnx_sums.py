"""Quantize, dequantize, and operators that sum products or windows, in ONNX.

What comes in: Relax calls. What goes out: nodes. It must not know files.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.quantize.export.onnx_operators import (
    Emit,
    Result,
    Writer,
    constant_of,
    is_call,
    numbers,
    shape_of,
)

_LARGEST = float(np.iinfo(np.int32).max)


def _quantize(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    scale, zero = _qparams(w, call, str(call.attrs.out_dtype), layer)
    axis = {"axis": int(call.attrs.axis)} if len(shape_of(call.args[1])) else {}
    return w.graph.emit("QuantizeLinear", [w.name(call.args[0]), scale, zero], layer, **axis)


def _dequantize(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    stored = constant_of(call.args[0])
    dtype = str(call.args[0].ty.dtype) if stored is None else str(stored.dtype)
    scale, zero = _qparams(w, call, dtype, layer)
    axis = {"axis": int(call.attrs.axis)} if len(shape_of(call.args[1])) else {}
    data = w.name(call.args[0], f"{layer}.weight")
    return w.graph.emit("DequantizeLinear", [data, scale, zero], layer, **axis)


def _qparams(w: Writer, call: Any, dtype: str, layer: str) -> tuple[str, str]:
    scale, zero = constant_of(call.args[1]), constant_of(call.args[2])
    assert scale is not None and zero is not None
    return (
        w.graph.constant(scale.astype(np.float32), f"{layer}.scale"),
        w.graph.constant(zero.astype(dtype), f"{layer}.zero_point"),
    )


def _bias(w: Writer, variable: Any, data: Any, weight: Any, layer: str) -> str | None:
    """The constant that is added to a sum of products, which its node takes over."""
    reader = w.reader(variable)
    added: Any = w.bindings.get(reader) if reader is not None else None
    if not is_call(added, "relax.add") or not added.args[0].same_as(variable):
        return None
    value = constant_of(added.args[1])
    channels = shape_of(variable)[1 if len(shape_of(variable)) > 2 else -1]
    if value is None or value.size != channels:
        return None
    if len(shape_of(variable)) > 2 and value.shape[1:2] != (channels,):
        return None
    value = value.reshape(-1).astype(np.float32)
    steps = _steps(w, data, weight)
    if steps is not None:
        found = np.rint(value.astype(np.float64) / steps.astype(np.float64))
        if np.abs(found).max(initial=0) <= _LARGEST:
            return _integer_bias(w, value, steps, layer)
    return w.graph.constant(value, f"{layer}.bias")


def _steps(w: Writer, data: Any, weight: Any) -> NDArray[np.float32] | None:
    """Real value of one step of the accumulator: one, or one for each output channel."""
    first, second = w.producer(data), w.producer(weight)
    if is_call(second, "relax.permute_dims"):
        second = w.producer(second.args[0])
    if not is_call(first, "relax.dequantize") or not is_call(second, "relax.dequantize"):
        return None
    left, right = constant_of(first.args[1]), constant_of(second.args[1])
    if left is None or right is None or left.ndim:
        return None
    return np.asarray(left.astype(np.float32) * right.astype(np.float32), dtype=np.float32)


def _integer_bias(
    w: Writer, value: NDArray[np.float32], steps: NDArray[np.float32], layer: str
) -> str:
    # In float32, and by the inverse where PyTorch's qnnpack does so.
    exact = value * (np.float32(1) / steps) if w.rounding == "qnnpack" else value / steps
    integers = np.rint(exact).astype(np.int32)
    stored = w.graph.constant(integers, f"{layer}.bias")
    scale = w.graph.constant(steps, f"{layer}.bias_scale")
    zero = w.graph.constant(np.zeros(steps.shape, np.int32), f"{layer}.bias_zero_point")
    axis = {"axis": 0} if steps.ndim else {}
    return w.graph.emit("DequantizeLinear", [stored, scale, zero], layer, **axis)[0]


def _with_bias(
    w: Writer, variable: Any, operator: str, inputs: list[str], call: Any, layer: str, **given: Any
) -> Result:
    bias = _bias(w, variable, call.args[0], call.args[1], layer)
    if bias is None:
        return w.graph.emit(operator, inputs, layer, **given)
    made = w.graph.emit(operator, [*inputs, bias], layer, **given)
    w.values[w.reader(variable)] = made
    return made


def _convolution(w: Writer, variable: Any, call: Any, layer: str, operator: str) -> Result:
    attributes = call.attrs
    if str(attributes.data_layout) not in ("NCHW", "NCW"):
        return None
    layouts = ("OIHW", "OIW") if operator == "Conv" else ("IOHW", "IOW")
    if str(attributes.kernel_layout) not in layouts:
        return None
    inputs = [w.name(call.args[0]), w.name(call.args[1], f"{layer}.weight")]
    given: dict[str, Any] = {
        "kernel_shape": shape_of(call.args[1])[2:],
        "strides": numbers(attributes.strides),
        "pads": numbers(attributes.padding),
        "dilations": numbers(attributes.dilation),
        "group": int(attributes.groups),
    }
    if operator == "ConvTranspose":
        given["output_padding"] = numbers(attributes.output_padding)
    return _with_bias(w, variable, operator, inputs, call, layer, **given)


def _matmul(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    turned = w.producer(call.args[1])
    own = is_call(turned, "relax.permute_dims") and len(shape_of(call.args[1])) == 2
    if own and len(shape_of(call.args[0])) == 2:
        inputs = [w.name(call.args[0]), w.name(turned.args[0], f"{layer}.weight")]
        return _with_bias(w, variable, "Gemm", inputs, call, layer, transB=1)
    inputs = [w.name(call.args[0]), w.name(call.args[1], f"{layer}.weight")]
    return w.graph.emit("MatMul", inputs, layer)


def _pool(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    attributes = call.attrs
    if str(attributes.layout) not in ("NCHW", "NCW"):
        return None
    average = "avg" in call.op.name
    given: dict[str, Any] = {
        "kernel_shape": numbers(attributes.pool_size),
        "strides": numbers(attributes.strides),
        "pads": numbers(attributes.padding),
        "ceil_mode": int(attributes.ceil_mode),
    }
    if average:
        given["count_include_pad"] = int(attributes.count_include_pad)
    if any(one != 1 for one in numbers(attributes.dilation)):
        given["dilations"] = numbers(attributes.dilation)
    kind = "AveragePool" if average else "MaxPool"
    return w.graph.emit(kind, [w.name(call.args[0])], layer, **given)


def _adaptive(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    before, after = shape_of(call.args[0])[2:], shape_of(variable)[2:]
    if str(call.attrs.layout) not in ("NCHW", "NCW"):
        return None
    if all(extent == 1 for extent in after):
        return w.graph.emit("GlobalAveragePool", [w.name(call.args[0])], layer)
    if any(size % out for size, out in zip(before, after, strict=True)):
        return None
    window = [size // out for size, out in zip(before, after, strict=True)]
    return w.graph.emit(
        "AveragePool", [w.name(call.args[0])], layer, kernel_shape=window, strides=window
    )


TABLE: dict[str, Emit] = {
    "relax.quantize": _quantize,
    "relax.dequantize": _dequantize,
    "relax.nn.conv1d": partial(_convolution, operator="Conv"),
    "relax.nn.conv2d": partial(_convolution, operator="Conv"),
    "relax.nn.conv1d_transpose": partial(_convolution, operator="ConvTranspose"),
    "relax.nn.conv2d_transpose": partial(_convolution, operator="ConvTranspose"),
    "relax.matmul": _matmul,
    "relax.nn.max_pool1d": _pool,
    "relax.nn.max_pool2d": _pool,
    "relax.nn.avg_pool1d": _pool,
    "relax.nn.avg_pool2d": _pool,
    "relax.nn.adaptive_avg_pool1d": _adaptive,
    "relax.nn.adaptive_avg_pool2d": _adaptive,
}
