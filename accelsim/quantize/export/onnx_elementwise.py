"""Operators on elements, and reductions, in ONNX.

What comes in: Relax calls. What goes out: nodes. It must not know files.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from accelsim.quantize.export.onnx_operators import Emit, Result, Writer, numbers, shape_of

_SAME = {
    "relax.nn.relu": "Relu",
    "relax.sigmoid": "Sigmoid",
    "relax.tanh": "Tanh",
    "relax.exp": "Exp",
    "relax.log": "Log",
    "relax.erf": "Erf",
    "relax.sqrt": "Sqrt",
    "relax.abs": "Abs",
    "relax.negative": "Neg",
    "relax.floor": "Floor",
    "relax.ceil": "Ceil",
    "relax.round": "Round",
    "relax.sign": "Sign",
    "relax.sin": "Sin",
    "relax.cos": "Cos",
    "relax.add": "Add",
    "relax.subtract": "Sub",
    "relax.multiply": "Mul",
    "relax.divide": "Div",
    "relax.power": "Pow",
    "relax.maximum": "Max",
    "relax.minimum": "Min",
    "relax.nn.softplus": "Softplus",
}
_REDUCTIONS = {
    "relax.mean": "ReduceMean",
    "relax.sum": "ReduceSum",
    "relax.max": "ReduceMax",
    "relax.min": "ReduceMin",
    "relax.prod": "ReduceProd",
}


def _same(w: Writer, variable: Any, call: Any, layer: str, operator: str) -> Result:
    return w.graph.emit(operator, [w.name(one) for one in call.args], layer)


def _clip(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    dtype = str(variable.ty.dtype)
    data, *ends = call.args
    limits = [float(getattr(one, "value", one)) for one in ends]
    inputs = [w.name(data)]
    for limit in limits:
        finite = np.isfinite(limit)
        inputs.append(w.graph.constant(np.array(limit, dtype), "limit") if finite else "")
    while inputs[-1] == "":
        inputs.pop()
    return w.graph.emit("Clip", inputs, layer)


def _leaky(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    alpha = float(call.attrs.alpha)
    return w.graph.emit("LeakyRelu", [w.name(call.args[0])], layer, alpha=alpha)


def _prelu(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    axis, rank = int(call.attrs.axis) % len(shape_of(variable)), len(shape_of(variable))
    slope = call.args[1]
    shape = [1] * (rank - axis)
    shape[0] = shape_of(slope)[0]
    target = w.graph.constant(np.array(shape, np.int64), "shape")
    turned = w.graph.emit("Reshape", [w.name(slope), target], layer)
    return w.graph.emit("PRelu", [w.name(call.args[0]), *turned], layer)


def _silu(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    data = w.name(call.args[0])
    return w.graph.emit("Mul", [data, *w.graph.emit("Sigmoid", [data], layer)], layer)


def _gelu(w: Writer, variable: Any, call: Any, layer: str, approximate: str) -> Result:
    return w.graph.emit("Gelu", [w.name(call.args[0])], layer, approximate=approximate)


def _rsqrt(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    root = w.graph.emit("Sqrt", [w.name(call.args[0])], layer)
    return w.graph.emit("Reciprocal", root, layer)


def _softmax(w: Writer, variable: Any, call: Any, layer: str, operator: str) -> Result:
    return w.graph.emit(operator, [w.name(call.args[0])], layer, axis=int(call.attrs.axis))


def _reduce(w: Writer, variable: Any, call: Any, layer: str, operator: str) -> Result:
    inputs = [w.name(call.args[0])]
    if call.attrs.axis is not None:
        axes = np.array(numbers(call.attrs.axis), np.int64)
        inputs.append(w.graph.constant(axes, "axes"))
    return w.graph.emit(operator, inputs, layer, keepdims=int(call.attrs.keepdims))


def _layer_norm(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    rank = len(shape_of(variable))
    axes = sorted(axis % rank for axis in numbers(call.attrs.axes))
    if axes != list(range(rank - len(axes), rank)):
        return None
    inputs = [w.name(one, layer) for one in call.args]
    attributes = call.attrs
    return w.graph.emit(
        "LayerNormalization", inputs, layer, axis=axes[0], epsilon=float(attributes.epsilon)
    )


def _batch_norm(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    attributes = call.attrs
    if int(attributes.axis) != 1:
        return None
    inputs = [w.name(one, layer) for one in call.args]
    made = w.graph.emit("BatchNormalization", inputs, layer, epsilon=float(attributes.epsilon))
    return [made[0], inputs[3], inputs[4]]


TABLE: dict[str, Emit] = {
    **{name: partial(_same, operator=target) for name, target in _SAME.items()},
    **{name: partial(_reduce, operator=target) for name, target in _REDUCTIONS.items()},
    "relax.clip": _clip,
    "relax.nn.leakyrelu": _leaky,
    "relax.nn.prelu": _prelu,
    "relax.nn.silu": _silu,
    "relax.nn.gelu": partial(_gelu, approximate="none"),
    "relax.nn.gelu_tanh": partial(_gelu, approximate="tanh"),
    "relax.rsqrt": _rsqrt,
    "relax.nn.softmax": partial(_softmax, operator="Softmax"),
    "relax.nn.log_softmax": partial(_softmax, operator="LogSoftmax"),
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.batch_norm": _batch_norm,
}
