"""Islands that only move elements: from where each element of the output comes.

What comes in: the last float operator of an island. What goes out: a `Move`, the island's leaves
and a map of codes: the operators are run on arrays of indices in place of values. It must not know
how a map becomes an integer operator.

A leaf that is itself only moved elements, at unchanged levels and read by this island alone, is
looked through: a chain of rearrangements is one. So are tensors of ranks that the NPU lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax

from accelsim.legalize.frame import Frame, Leaf, leaf_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.layout import AXES, nhwc
from accelsim.legalize.nearest import nearest_indices
from accelsim.legalize.pieces import INPUT_STEP
from accelsim.quantize.layouts import image_layout

Codes = NDArray[Any]
MOST_ELEMENTS = 1 << 25
STARTS = (
    *("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims"),
    *("relax.permute_dims", "relax.strided_slice", "tuple_element", "relax.concat", "relax.stack"),
    *("relax.nn.pad", "relax.tile", "relax.repeat", "relax.flip", "relax.broadcast_to"),
    *("relax.take", "relax.nn.pixel_shuffle", "relax.image.resize2d"),
)


class UnmovedError(Exception):
    """The island does more than move elements; the message completes "… because …"."""


class UnknownMoveError(UnmovedError):
    """An operator of the island is none that moves elements."""


@dataclass(frozen=True, slots=True)
class Move:
    """Leaves, and the codes of the output over (n, h, w, c), see `legalize.pieces`.

    A code -1 - k stands for the real constant `constants[k]`.
    """

    leaves: tuple[Leaf, ...]
    codes: Codes
    constants: tuple[float, ...]
    absorbed: tuple[str, ...]  # names of the layers looked through
    hidden: tuple[Any, ...]  # their outputs


def move_of(frame: Frame, node: Node, *, absorb: bool) -> Move:
    """The map of an island that ends in `node`; without `absorb` its leaves stay as they are.

    Raises UnmovedError.
    """
    if not frame.layout:
        raise UnmovedError(f"it has a tensor of rank {len(frame.shape)}, which the NPU lacks")
    if math.prod(frame.shape) > MOST_ELEMENTS:
        raise UnmovedError(f"its {math.prod(frame.shape)} elements exceed {MOST_ELEMENTS}")
    tracer = _Tracer(frame, absorb)
    alone = node.op == "relax.dequantize"
    codes = tracer.codes(node.var) if alone else tracer.applied(node)
    if codes.shape != tuple(frame.shape):
        raise UnmovedError(f"its elements have the shape {codes.shape} in place of {frame.shape}")
    return Move(
        tuple(tracer.leaves.values()),
        to_physical(codes, frame.layout),
        tuple(tracer.constants),
        tuple(tracer.absorbed),
        tuple(tracer.hidden),
    )


def to_physical(values: Codes, layout: str) -> Codes:
    """An array of the graph's layout over (n, h, w, c)."""
    order = [layout.index(axis) for axis in AXES if axis in layout]
    return np.ascontiguousarray(values.transpose(order)).reshape(nhwc(values.shape, layout))


def _from_physical(values: Codes, layout: str, shape: Sequence[int]) -> Codes:
    kept = [axis for axis in AXES if axis in layout]
    extents = dict(zip(layout, shape, strict=True))
    turned = values.reshape([extents[axis] for axis in kept])
    return turned.transpose([kept.index(axis) for axis in layout])


@dataclass(slots=True)
class _Tracer:
    frame: Frame
    absorb: bool
    leaves: dict[Any, Leaf] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    absorbed: list[str] = field(default_factory=list)
    hidden: list[Any] = field(default_factory=list)

    def codes(self, expr: Any) -> Codes:
        """Codes of an operand, in its logical shape."""
        graph = self.frame.graph
        leaf = leaf_of(self.frame, expr)
        if leaf is not None:
            return self._leaf(leaf)
        constant = graph.real_constant(expr)
        if constant is not None:
            return self._filled(constant)
        node = graph.producer(expr)
        if node is None:
            raise UnmovedError("it moves elements of a float32 tensor")
        return self.applied(node)

    def applied(self, node: Node) -> Codes:
        """Codes of an operator's result."""
        mover = _MOVERS.get(node.op)
        if mover is None:
            name = node.op.removeprefix("relax.")
            raise UnknownMoveError(f"{name} has no integer form on the NPU")
        codes = mover(self, node)
        if codes.size > MOST_ELEMENTS:
            raise UnmovedError(f"the {codes.size} elements between exceed {MOST_ELEMENTS}")
        return codes

    def constant(self, value: float) -> int:
        """The code of a real constant."""
        if value not in self.constants:
            self.constants.append(value)
        return -1 - self.constants.index(value)

    def _filled(self, values: Codes) -> Codes:
        distinct, inverse = np.unique(values, return_inverse=True)
        if distinct.size > 16:
            raise UnmovedError("it puts a constant tensor between activations")
        codes = np.array([self.constant(float(value)) for value in distinct], np.int64)
        return codes[inverse].reshape(values.shape)

    def _leaf(self, leaf: Leaf) -> Codes:
        inner = self._looked_through(leaf)
        if inner is not None:
            return inner
        if not leaf.layout:
            raise UnmovedError(f"it reads a tensor of rank {len(leaf.shape)}, which the NPU lacks")
        number = list(self.leaves).index(leaf.var) if leaf.var in self.leaves else len(self.leaves)
        self.leaves.setdefault(leaf.var, leaf)
        flat = number * INPUT_STEP + np.arange(math.prod(leaf.shape), dtype=np.int64)
        return _from_physical(flat, leaf.layout, leaf.shape)

    def _looked_through(self, leaf: Leaf) -> Codes | None:
        """Codes of a leaf that is itself only moved elements, if it may be skipped."""
        graph = self.frame.graph
        quantize = graph.producer(leaf.var)
        if quantize is None or quantize.op != "relax.quantize":
            return None
        alone = graph.sole_user(leaf.var) is not None
        if leaf.layout and not (self.absorb and alone):
            return None
        if not leaf.quantization.same_levels(self.frame.quantization) and leaf.layout:
            return None
        before = len(self.absorbed)
        inner = _Tracer(self.frame, self.absorb, dict(self.leaves), list(self.constants))
        try:
            codes = inner.codes(quantize.args[0])
        except UnmovedError:
            if leaf.layout:
                return None
            raise
        levels = leaf.quantization
        if any(not one.quantization.same_levels(levels) for one in inner.leaves.values()):
            if leaf.layout:
                return None
            raise UnmovedError(f"its source of rank {len(leaf.shape)} changes scale")
        if inner.constants != self.constants:
            if leaf.layout:
                return None
            raise UnmovedError(f"its source of rank {len(leaf.shape)} is part constant")
        self.leaves = inner.leaves
        names = (*inner.absorbed, quantize.name)
        self.absorbed[before:] = [name for name in names if name not in self.absorbed]
        self.hidden += [*inner.hidden, leaf.var]
        return codes


def _integers(graph: Graph, expr: Any) -> list[int]:
    """A tuple of whole numbers, or a constant one."""
    node = graph.producer(expr)
    if node is not None and node.op == "tuple":
        expr = node.value
    if isinstance(expr, ir.Tuple):
        return [int(getattr(one, "value", one)) for one in expr.fields]
    if isinstance(expr, relax.ShapeExpr):
        return [int(one) for one in expr.values]
    values = graph.constant(expr)
    if values is None:
        raise UnmovedError("its indices are not constants")
    return [int(one) for one in values.reshape(-1)]


def _axis(value: Any, rank: int) -> int:
    return int(value) % rank


def _reshape(tracer: _Tracer, node: Node) -> Codes:
    return tracer.codes(node.args[0]).reshape(node.shape)


def _permute(tracer: _Tracer, node: Node) -> Codes:
    values, axes = tracer.codes(node.args[0]), node.value.attrs.axes
    order = range(values.ndim)[::-1] if axes is None else [_axis(a, values.ndim) for a in axes]
    return values.transpose(tuple(order))


def _slice(tracer: _Tracer, node: Node) -> Codes:
    graph, values = tracer.frame.graph, tracer.codes(node.args[0])
    axes, begins, ends = (_integers(graph, argument) for argument in node.args[1:4])
    strides = _integers(graph, node.args[4]) if len(node.args) > 4 else [1] * len(axes)
    chosen = [slice(None)] * values.ndim
    for axis, begin, end, stride in zip(axes, begins, ends, strides, strict=True):
        chosen[_axis(axis, values.ndim)] = slice(begin, end, stride)
    return _shaped(values[tuple(chosen)], node)


def _element(tracer: _Tracer, node: Node) -> Codes:
    """An element of a split's results, or of a tuple."""
    graph, index = tracer.frame.graph, int(node.value.index)
    source = graph.producer(node.args[0])
    if source is not None and source.op == "tuple":
        return tracer.codes(source.args[index])
    if source is None or source.op != "relax.split":
        name = "its source" if source is None else source.op.removeprefix("relax.")
        raise UnknownMoveError(f"{name} has no integer form on the NPU")
    values, attrs = tracer.codes(source.args[0]), source.value.attrs
    axis, sections = _axis(attrs.axis, values.ndim), attrs.indices_or_sections
    try:
        bounds = [int(one) for one in sections]
    except TypeError:
        size = -(-values.shape[axis] // int(sections))
        bounds = list(range(size, values.shape[axis], size))
    return _shaped(np.split(values, bounds, axis)[index], node)


def _shaped(values: Codes, node: Node) -> Codes:
    if values.shape != tuple(node.shape):
        raise UnmovedError(f"its indices give the shape {values.shape} in place of {node.shape}")
    return values


def _list(tracer: _Tracer, node: Node) -> list[Codes]:
    """Codes of the operands of a concat or stack."""
    argument = node.args[0]
    source = tracer.frame.graph.producer(argument)
    fields = source.args if source is not None and source.op == "tuple" else argument.fields
    return [tracer.codes(one) for one in fields]


def _concat(tracer: _Tracer, node: Node) -> Codes:
    axis = node.value.attrs.axis
    return np.concatenate(_list(tracer, node), 0 if axis is None else int(axis))


def _stack(tracer: _Tracer, node: Node) -> Codes:
    axis = node.value.attrs.axis
    return np.stack(_list(tracer, node), 0 if axis is None else int(axis))


_PAD_MODES: Mapping[str, Any] = {"replicate": "edge", "reflect": "reflect", "circular": "wrap"}


def _pad(tracer: _Tracer, node: Node) -> Codes:
    values, attrs = tracer.codes(node.args[0]), node.value.attrs
    flat = [int(one) for one in attrs.pad_width]
    width, mode = list(zip(flat[::2], flat[1::2], strict=True)), str(attrs.pad_mode)
    if min(flat, default=0) < 0:
        raise UnmovedError("it pads by less than nothing, which cuts elements off")
    if mode == "constant":
        code = tracer.constant(float(attrs.pad_value))
        return np.pad(values, width, constant_values=code)
    if mode not in _PAD_MODES:
        raise UnmovedError(f"it pads by {mode}")
    return np.pad(values, width, _PAD_MODES[mode])


def _tile(tracer: _Tracer, node: Node) -> Codes:
    return np.tile(tracer.codes(node.args[0]), [int(one) for one in node.value.attrs.repeats])


def _repeat(tracer: _Tracer, node: Node) -> Codes:
    attrs = node.value.attrs
    axis = None if attrs.axis is None else int(attrs.axis)
    return np.repeat(tracer.codes(node.args[0]), int(attrs.repeats), axis)


def _flip(tracer: _Tracer, node: Node) -> Codes:
    return np.flip(tracer.codes(node.args[0]), int(node.value.attrs.axis))


def _broadcast(tracer: _Tracer, node: Node) -> Codes:
    return np.broadcast_to(tracer.codes(node.args[0]), node.shape)


def _take(tracer: _Tracer, node: Node) -> Codes:
    values, axis = tracer.codes(node.args[0]), node.value.attrs.axis
    indices = tracer.frame.graph.constant(node.args[1])
    if indices is None:
        raise UnmovedError("its indices are not constants")
    return _shaped(np.take(values, indices, None if axis is None else int(axis)), node)


def _pixel_shuffle(tracer: _Tracer, node: Node) -> Codes:
    values, r = tracer.codes(node.args[0]), int(node.value.attrs.upscale_factor)
    *outer, channels, height, width = values.shape
    split = values.reshape(*outer, channels // (r * r), r, r, height, width)
    k = len(outer)
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return split.transpose(order).reshape(node.shape)


def _resize(tracer: _Tracer, node: Node) -> Codes:
    attrs = node.value.attrs
    if str(attrs.method) == "linear":
        raise UnknownMoveError("a bilinear resize makes new values")
    layout = image_layout(node.value)
    if str(attrs.method) != "nearest_neighbor" or layout not in ("nchw", "nhwc"):
        raise UnmovedError(f"it resizes {layout} by the method {attrs.method}")
    values = tracer.codes(node.args[0])
    mode, rounding = str(attrs.coordinate_transformation_mode), str(attrs.rounding_method)
    for axis in (layout.index("h"), layout.index("w")):
        indices = nearest_indices(values.shape[axis], node.shape[axis], mode, rounding)
        if isinstance(indices, str):
            raise UnmovedError(indices)
        values = np.take(values, indices, axis)
    return values


_MOVERS: Mapping[str, Callable[[_Tracer, Node], Codes]] = {
    **dict.fromkeys(STARTS[:4], _reshape),
    "relax.permute_dims": _permute,
    "relax.strided_slice": _slice,
    "tuple_element": _element,
    "relax.concat": _concat,
    "relax.stack": _stack,
    "relax.nn.pad": _pad,
    "relax.tile": _tile,
    "relax.repeat": _repeat,
    "relax.flip": _flip,
    "relax.broadcast_to": _broadcast,
    "relax.take": _take,
    "relax.nn.pixel_shuffle": _pixel_shuffle,
    "relax.image.resize2d": _resize,
}
