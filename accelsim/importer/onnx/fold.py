"""Nodes whose result is known when the file is read: shapes, and what is computed from them.

What comes in: a node with its constant inputs and the shapes known so far. What goes out: its
result as a constant, or None. It must not know quantization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.importer.onnx.model import OnnxNode
from accelsim.importer.onnx.tensors import dtype_of

Array = NDArray[Any]
Inputs = Sequence[Array | None]
LIMIT_ELEMENTS = 1 << 24
"""A constant with more elements is not computed."""


def folded(
    node: OnnxNode, constants: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
) -> Array | None:
    """The node's one result, where it follows from constants and shapes."""
    if node.domain or len(node.outputs) != 1:
        return None
    if node.operator in ("Shape", "Size"):
        return _shape(node, shapes.get(node.input(0)))
    rule = _RULES.get(node.operator)
    if rule is None or any(name and name not in constants for name in node.inputs):
        return None
    inputs = [constants.get(name) if name else None for name in node.inputs]
    if sum(one.size for one in inputs if one is not None) > LIMIT_ELEMENTS:
        return None
    try:
        with np.errstate(all="ignore"):
            result = rule(node, inputs)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, KeyError):
        return None  # left as it is: whoever needs it says what is wrong
    return None if result is None else np.asarray(result)


def _shape(node: OnnxNode, shape: tuple[int, ...] | None) -> Array | None:
    if shape is None:
        return None
    if node.operator == "Size":
        return np.asarray(prod(shape), np.int64)
    return np.asarray(shape[node.attributes.get("start", 0) : node.attributes.get("end")], np.int64)


def _constant(node: OnnxNode, _: Inputs) -> Any:
    a = node.attributes
    if "value" in a:
        return a["value"]
    kinds: dict[str, Any] = {"value_int": np.int64, "value_ints": np.int64}
    kinds |= {"value_float": np.float32, "value_floats": np.float32}
    return next((np.asarray(a[key], kind) for key, kind in kinds.items() if key in a), None)


def _constant_of_shape(node: OnnxNode, inputs: Inputs) -> Any:
    shape = [int(extent) for extent in _given(inputs[0])]
    value = node.attributes.get("value", np.zeros(1, np.float32))
    if prod(shape) > LIMIT_ELEMENTS or min(shape, default=0) < 0:
        return None
    return np.full(shape, value.reshape(-1)[0], value.dtype)


def _expand(_: OnnxNode, inputs: Inputs) -> Any:
    x = _given(inputs[0])
    shape = np.broadcast_shapes(x.shape, tuple(int(extent) for extent in _given(inputs[1])))
    return None if prod(shape) > LIMIT_ELEMENTS else np.broadcast_to(x, shape).copy()


def _range(_: OnnxNode, inputs: Inputs) -> Any:
    start, limit, step = (_given(one).reshape(-1)[0] for one in inputs)
    if not step or abs((float(limit) - float(start)) / float(step)) > LIMIT_ELEMENTS:
        return None
    return np.arange(float(start), float(limit), float(step)).astype(start.dtype)


def _gather(node: OnnxNode, inputs: Inputs) -> Any:
    x, at = _given(inputs[0]), _given(inputs[1])
    axis = node.attributes.get("axis", 0)
    if at.size * max(x.size // max(x.shape[axis], 1), 1) > LIMIT_ELEMENTS:
        return None
    return np.take(x, at, axis=axis)


def _reshape(node: OnnxNode, inputs: Inputs) -> Any:
    x, shape = _given(inputs[0]), [int(extent) for extent in _given(inputs[1])]
    if not node.attributes.get("allowzero", 0):
        shape = [x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape)]
    return x.reshape(shape)


def _axes(node: OnnxNode, inputs: Inputs) -> tuple[int, ...] | None:
    given = inputs[1] if len(inputs) > 1 else node.attributes.get("axes")
    return None if given is None else tuple(int(axis) for axis in given)


def _unsqueeze(node: OnnxNode, inputs: Inputs) -> Any:
    axes = _axes(node, inputs)
    return None if axes is None else np.expand_dims(_given(inputs[0]), axes)


def _slice(node: OnnxNode, inputs: Inputs) -> Any:
    x = _given(inputs[0])
    if len(inputs) < 3:  # before opset 10
        a = node.attributes
        parts: list[Any] = [a.get("starts"), a.get("ends"), a.get("axes"), None]
    else:
        parts = [*inputs[1:], None, None][:4]
    starts, ends = (list(map(int, part)) for part in parts[:2])
    axes = range(len(starts)) if parts[2] is None else [int(axis) for axis in parts[2]]
    steps = [1] * len(starts) if parts[3] is None else [int(step) for step in parts[3]]
    place: list[slice] = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, starts, ends, steps, strict=True):
        below = -x.shape[axis] - 1  # what lies before the first element, not the last one
        place[axis] = slice(first, None if step < 0 and last <= below else last, step)
    return x[tuple(place)]


def _cast(node: OnnxNode, inputs: Inputs) -> Any:
    kind = dtype_of(node.attributes["to"])
    return _given(inputs[0]).astype(kind) if kind.islower() else None


def _divide(_: OnnxNode, inputs: Inputs) -> Any:
    a, b = _given(inputs[0]), _given(inputs[1])
    if a.dtype.kind not in "iu":
        return a / b
    if not b.all():
        return None
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)  # towards zero


def _given(value: Array | None) -> Array:
    if value is None:
        raise ValueError("an input is left out")
    return value


def _two(function: Callable[..., Any]) -> Callable[[OnnxNode, Inputs], Any]:
    def rule(_: OnnxNode, inputs: Inputs) -> Any:
        a, b = (_given(one) for one in inputs)
        if prod(np.broadcast_shapes(a.shape, b.shape)) > LIMIT_ELEMENTS:
            return None
        result = function(a, b)
        return result if result.dtype == np.bool_ else result.astype(a.dtype)

    return rule


_RULES: dict[str, Callable[[OnnxNode, Inputs], Any]] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Identity": lambda _, inputs: _given(inputs[0]),
    "Gather": _gather,
    "Concat": lambda node, inputs: np.concatenate(
        [_given(one) for one in inputs], axis=node.attributes["axis"]
    ),
    "Unsqueeze": _unsqueeze,
    "Squeeze": lambda node, inputs: np.squeeze(_given(inputs[0]), _axes(node, inputs)),
    "Reshape": _reshape,
    "Transpose": lambda node, inputs: _given(inputs[0]).transpose(node.attributes.get("perm")),
    "Slice": _slice,
    "Expand": _expand,
    "Range": _range,
    "Cast": _cast,
    "Add": _two(np.add),
    "Sub": _two(np.subtract),
    "Mul": _two(np.multiply),
    "Div": _divide,
    "Equal": _two(np.equal),
    "Greater": _two(np.greater),
    "Less": _two(np.less),
    "And": _two(np.logical_and),
    "Or": _two(np.logical_or),
    "Not": lambda _, inputs: np.logical_not(_given(inputs[0])),
    "Neg": lambda _, inputs: -_given(inputs[0]),
    "Sqrt": lambda _, inputs: np.sqrt(_given(inputs[0])),
    "Floor": lambda _, inputs: np.floor(_given(inputs[0])),
    "Ceil": lambda _, inputs: np.ceil(_given(inputs[0])),
    "Where": lambda _, inputs: np.where(*(_given(one) for one in inputs)),
    "ReduceProd": lambda node, inputs: np.prod(
        _given(inputs[0]),
        axis=_axes(node, inputs),
        keepdims=bool(node.attributes.get("keepdims", 1)),
    ),
}
