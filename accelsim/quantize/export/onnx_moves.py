"""Operators that only move elements, in ONNX.

What comes in: Relax calls. What goes out: nodes. It must not know files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.quantize.export.onnx_operators import Emit, Result, Writer, numbers, shape_of


def _integers(w: Writer, values: list[int], what: str) -> str:
    return w.graph.constant(np.array(values, np.int64), what)


def _reshape(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    shape = _integers(w, shape_of(variable), "shape")
    return w.graph.emit("Reshape", [w.name(call.args[0]), shape], layer)


def _permute(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    rank = len(shape_of(variable))
    given = call.attrs.axes
    axes = list(range(rank))[::-1] if given is None else [a % rank for a in numbers(given)]
    return w.graph.emit("Transpose", [w.name(call.args[0])], layer, perm=axes)


def _concat(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    axis = int(call.attrs.axis if call.attrs.axis is not None else 0)
    return w.graph.emit("Concat", w.names(call.args[0]), layer, axis=axis)


def _split(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    axis = int(call.attrs.axis)
    parts = [int(one.shape[axis]) for one in variable.ty.fields]
    sizes = _integers(w, parts, "sizes")
    return w.graph.emit(
        "Split", [w.name(call.args[0]), sizes], layer, outputs=len(parts), axis=axis
    )


def _slice(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    lists = [_plain(one) for one in call.args[1:]]
    if any(one is None for one in lists):
        return None
    axes, begin, end = (list(one or []) for one in lists[:3])
    strides = lists[3] if len(lists) > 3 and lists[3] else [1] * len(axes)
    inputs = [w.name(call.args[0])]
    for values, what in ((begin, "starts"), (end, "ends"), (axes, "axes"), (strides, "steps")):
        inputs.append(_integers(w, list(values), what))
    return w.graph.emit("Slice", inputs, layer)


def _plain(expr: Any) -> list[int] | None:
    if isinstance(expr, relax.ShapeExpr):
        return numbers(expr)
    if isinstance(expr, relax.Tuple):
        return [int(getattr(one, "value", one)) for one in expr.fields]
    return None


def _pad(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge"}
    mode = modes.get(str(call.attrs.pad_mode))
    if mode is None:
        return None
    widths = numbers(call.attrs.pad_width)
    pads = _integers(w, widths[::2] + widths[1::2], "pads")
    value = w.graph.constant(np.array(float(call.attrs.pad_value), np.float32), "fill")
    return w.graph.emit("Pad", [w.name(call.args[0]), pads, value], layer, mode=mode)


def _take(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    if call.attrs.axis is None:
        return None
    inputs = [w.name(call.args[0], f"{layer}.weight"), w.name(call.args[1])]
    return w.graph.emit("Gather", inputs, layer, axis=int(call.attrs.axis))


def _expand(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    shape = _integers(w, shape_of(variable), "shape")
    return w.graph.emit("Expand", [w.name(call.args[0]), shape], layer)


def _resize(w: Writer, variable: Any, call: Any, layer: str) -> Result:
    attributes = call.attrs
    method, about = str(attributes.method), str(attributes.coordinate_transformation_mode)
    modes = {"nearest_neighbor": "nearest", "linear": "linear"}
    if str(attributes.layout) != "NCHW" or method not in modes:
        return None
    rounding = {"floor": "floor", "round": "round_prefer_floor", "": "round_prefer_floor"}
    nearest = rounding.get(str(attributes.rounding_method), "floor")
    sizes = _integers(w, shape_of(variable), "sizes")
    return w.graph.emit(
        "Resize",
        [w.name(call.args[0]), "", "", sizes],
        layer,
        mode=modes[method],
        coordinate_transformation_mode=about,
        nearest_mode=nearest,
    )


TABLE: dict[str, Emit] = {
    "relax.reshape": _reshape,
    "relax.squeeze": _reshape,
    "relax.expand_dims": _reshape,
    "relax.flatten": _reshape,
    "relax.permute_dims": _permute,
    "relax.concat": _concat,
    "relax.split": _split,
    "relax.strided_slice": _slice,
    "relax.nn.pad": _pad,
    "relax.take": _take,
    "relax.broadcast_to": _expand,
    "relax.image.resize2d": _resize,
}
