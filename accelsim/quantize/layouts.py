"""Which axis of each quantized tensor is its channels: the one that goes into the NPU's lanes.

What comes in: a QDQ module. What goes out: an axis by the name of each quantized tensor, and how a
shape and an array turn into (n, h, w, c). Compiler and reference both read it, since they exchange
tensors in that order; it is no arithmetic. It must not know the hardware.

Tensors that operators join element by element share their axis. Operators then ask for one:
convolutions, windows and resizes for that of their layout, matrix products, layer normalization and
softmax over the last axis for the last; after them, sums with one number for each element of an
axis for that axis. Where nobody asks, a tensor follows the one that it is
reshaped or transposed from; else axis 1 for four axes and the last for fewer, or always the last in
a function that is marked as of channels that come last. The first to ask wins; an operator whose
wish is not met stays on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.ir.expr import GenericConst

from accelsim.quantize.spans import span_name

Shape = tuple[int, ...]

CHANNELS_LAST = "accelsim.channels_last"
"""Attribute of a function whose images are (n, h, w, c)."""

_IMAGES = {
    *("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv1d_transpose"),
    *("relax.nn.conv2d_transpose", "relax.nn.max_pool1d", "relax.nn.max_pool2d"),
    *("relax.nn.avg_pool1d", "relax.nn.avg_pool2d", "relax.nn.adaptive_avg_pool1d"),
    *("relax.nn.adaptive_avg_pool2d", "relax.nn.adaptive_max_pool2d", "relax.image.resize2d"),
    *("relax.nn.batch_norm", "relax.nn.pixel_shuffle", "relax.nn.prelu"),
}
_LAST = {"relax.matmul", "relax.nn.layer_norm", "relax.nn.rms_norm"}
_MOVES = {"relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims"}
_APART = _MOVES | {"relax.permute_dims", "relax.mean", "relax.sum", "relax.max", "relax.min"}


def channel_axes(module: Any) -> dict[str, int]:
    """Channel axis of every quantized tensor of `main`, by the name on its quantize's span."""
    axes = variable_axes(module["main"])
    found: dict[str, int] = {}
    for variable, call in _calls(module["main"]):
        name = span_name(call)
        if _operator(call) == "relax.quantize" and name is not None and _rank(variable):
            found.setdefault(name, axes[variable])
    return found


def variable_axes(function: Any) -> dict[Any, int]:
    """Channel axis of every tensor of a Relax function, by its variable; 0 for a scalar."""
    marked = function.attrs is not None and CHANNELS_LAST in function.attrs
    classes = _Classes(last=marked and bool(function.attrs[CHANNELS_LAST]))
    values = dict(_calls(function))
    for variable, call in values.items():
        _join(classes, variable, call)
        if _operator(call) == "relax.matmul":
            for operand in _tensors(call):
                _ask_before(classes, values, operand)
    for variable, call in values.items():
        place = _numbers_along(call, values)
        if place in (1, _rank(variable) - 1):
            classes.ask(variable, place)
    for parameter in function.params:
        classes.settle(parameter, None)
    for variable, call in values.items():
        classes.settle(variable, _followed(classes, variable, call))
    return {variable: classes.axis(variable) for variable in (*function.params, *values)}


def image_layout(call: Any) -> str:
    """The axes of an image operator's activations, such as "nchw": "nc" where it states none."""
    attrs = call.attrs if isinstance(call, relax.Call) else call
    for name in ("data_layout", "layout"):
        stated = getattr(attrs, name, None)
        if stated is not None:
            return str(stated).lower()
    return "nc"


def nhwc_shape(shape: Shape, axis: int) -> tuple[int, int, int, int]:
    """(n, h, w, c) of a shape whose channels are `axis`; one axis is (1, 1, 1, c).

    Beyond four axes, which the host alone has, all between the first and the channels count as w.
    """
    order = nhwc_order(len(shape), axis)
    moved = [shape[index] for index in order]
    if len(moved) < 2:
        return (1, 1, 1, moved[0] if moved else 1)
    if len(moved) == 4:
        return (moved[0], moved[1], moved[2], moved[3])
    return (moved[0], 1, int(np.prod(moved[1:-1], dtype=np.int64)), moved[-1])


def to_nhwc(values: NDArray[Any], axis: int) -> NDArray[Any]:
    """An array of a graph's layout as (n, h, w, c), contiguous."""
    turned = values.transpose(nhwc_order(values.ndim, axis))
    return np.ascontiguousarray(turned.reshape(nhwc_shape(values.shape, axis)))


def from_nhwc(values: NDArray[Any], shape: Shape, axis: int) -> NDArray[Any]:
    """The inverse of `to_nhwc` for the graph's `shape`."""
    order = nhwc_order(len(shape), axis)
    turned = values.reshape([shape[index] for index in order])
    return np.ascontiguousarray(turned.transpose(np.argsort(order))).reshape(shape)


def nhwc_order(rank: int, axis: int) -> list[int]:
    """Axes of a graph's tensor in the order n, …, c."""
    return [index for index in range(rank) if index != axis % rank] + [axis % rank] if rank else []


class _Classes:
    """Tensors that share their channel axis, and the axis of each class once it is known."""

    def __init__(self, last: bool) -> None:
        self._last = last
        self._parent: dict[Any, Any] = {}
        self._axis: dict[Any, int] = {}

    def root(self, variable: Any) -> Any:
        """One tensor that stands for the class."""
        while variable in self._parent:
            variable = self._parent[variable]
        return variable

    def join(self, one: Any, other: Any) -> None:
        """Make two tensors of equal rank share their axis, unless both have asked differently."""
        a, b = self.root(one), self.root(other)
        if a.same_as(b) or _rank(one) != _rank(other):
            return
        if a in self._axis and b in self._axis and self._axis[a] != self._axis[b]:
            return
        self._parent[b] = a
        if b in self._axis:
            self._axis[a] = self._axis.pop(b)

    def ask(self, variable: Any, axis: int) -> None:
        """The first wish counts."""
        if _rank(variable) > 1:
            self._axis.setdefault(self.root(variable), axis % _rank(variable))

    def settle(self, variable: Any, axis: int | None) -> None:
        """Give a class that nobody asked for an axis."""
        rank = _rank(variable)
        if rank and (axis is not None or self.root(variable) not in self._axis):
            default = 1 if rank == 4 and not self._last else rank - 1
            self._axis.setdefault(self.root(variable), default if axis is None else axis)

    def axis(self, variable: Any) -> int:
        """The channel axis of a settled tensor."""
        return self._axis.get(self.root(variable), max(_rank(variable) - 1, 0))


def _join(classes: _Classes, variable: Any, call: Any) -> None:
    """What one operator says of its operands and its result."""
    operator = _operator(call)
    inputs = list(_tensors(call))
    if operator in _IMAGES:
        for tensor in (*inputs[:1], variable):
            classes.ask(tensor, _channels(call))
    elif operator in _LAST:
        for tensor in (*inputs[: 2 if operator == "relax.matmul" else 1], variable):
            classes.ask(tensor, -1)
    elif operator in ("relax.nn.softmax", "relax.nn.log_softmax"):
        axis = int(call.attrs.axis) % max(_rank(variable), 1)
        if axis in (1, _rank(variable) - 1):
            classes.ask(variable, axis)
    if operator not in _APART and operator not in _LAST and operator not in _IMAGES:
        for tensor in inputs:
            classes.join(variable, tensor)


def _numbers_along(call: Any, values: dict[Any, Any]) -> int:
    """The axis along which a sum's constant operand has its numbers, 0 where there is none."""
    if _operator(call) not in ("relax.add", "relax.subtract"):
        return 0
    rank = max(_rank(operand) for operand in call.args)
    for operand in call.args:
        source: Any = values.get(operand, operand)
        if _operator(source) == "relax.dequantize":
            source = source.args[0]
        shape = _shape(source) if isinstance(source, GenericConst) else ()
        long = [rank - len(shape) + place for place, size in enumerate(shape) if size > 1]
        if len(long) == 1:
            return long[0]
    return 0


def _channels(call: Any) -> int:
    """The axis of an image operator's channels."""
    axis = getattr(call.attrs, "axis", None)
    return image_layout(call).index("c") if axis is None else int(axis)


def _ask_before(classes: _Classes, values: dict[Any, Any], operand: Any) -> None:
    """Where a product's operand is a tensor with its last two axes exchanged, ask for its last."""
    call: Any = values.get(operand)
    while _operator(call) in ("relax.dequantize", "relax.quantize"):
        operand = next(_tensors(call), None)
        call = values.get(operand)
    if _operator(call) == "relax.permute_dims":
        rank, axes = _rank(operand), call.attrs.axes
        order = [int(axis) % rank for axis in axes] if axes else list(range(rank))[::-1]
        if order == [*range(rank - 2), rank - 1, rank - 2]:
            source = next(_tensors(call), None)
            if source is not None:
                classes.ask(source, -1)


def _followed(classes: _Classes, variable: Any, call: Any) -> int | None:
    """The axis that a reshaped, transposed or reduced tensor takes from its source, if any."""
    operator, rank = _operator(call), _rank(variable)
    inputs = list(_tensors(call))
    # Beyond four axes there is no layout to follow.
    if operator not in _APART or not inputs or not rank or not 0 < _rank(inputs[0]) <= 4:
        return None
    source = inputs[0]
    axis, shape, before = classes.axis(source), _shape(variable), _shape(source)
    if operator == "relax.permute_dims":
        axes = call.attrs.axes
        order = [int(a) % rank for a in axes] if axes else list(range(rank))[::-1]
        place = order.index(axis) if axis in order else -1
        return place if place in (1, rank - 1) else None
    for place in (1, rank - 1):
        same_end = (axis == 1) == (place == 1) or rank == 2 or len(before) == 2
        if place < rank and same_end and shape[place] == before[axis]:
            return place
    return None


def _calls(function: Any) -> Iterator[tuple[Any, Any]]:
    for block in function.body.blocks:
        for binding in block.bindings:
            yield binding.var, binding.value


def _operator(value: Any) -> str:
    named = isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op)
    return str(value.op.name) if named else ""


def _tensors(value: Any) -> Iterator[Any]:
    """Variables that a value reads, tuples looked into."""
    if isinstance(value, relax.Var):
        yield value
    elif isinstance(value, relax.TupleGetItem):
        yield from _tensors(value.tuple_value)
    elif isinstance(value, relax.Call | relax.Tuple):
        for part in value.args if isinstance(value, relax.Call) else value.fields:
            yield from _tensors(part)


def _shape(expression: Any) -> Shape:
    shape = getattr(getattr(expression, "ty", None), "shape", None)
    return tuple(int(extent) for extent in shape) if shape is not None else ()


def _rank(expression: Any) -> int:
    return len(_shape(expression))
