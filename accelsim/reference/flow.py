"""Float values between dequantize and quantize, as the operator modules read them.

What comes in: Relax calls and the values of their operands. What goes out: an `Island`, which ends
in one quantize, and the `Claim` that an operator module makes of it. It must not know what any
operator computes.

A value is one of

* `Source`: a dequantized activation, perhaps reshaped since;
* `Weight`: a dequantized integer constant, with its scales;
* `np.ndarray`: a constant, a number or a shape;
* `Node`: an operator applied to values, among them a tuple of values where it takes a list;
* `str`: a float input of the model, by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelsim.errors import ModelError
from accelsim.reference.network import QuantizedTensor, Shape

UNLIMITED = (-math.inf, math.inf)
RESHAPES = ("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims")
_CLAMPS = {"relax.nn.relu": (0.0, math.inf), "relax.nn.relu6": (0.0, 6.0)}


@dataclass(frozen=True, slots=True)
class Source:
    """A dequantized activation in the logical shape in which its user sees it."""

    tensor: QuantizedTensor
    shape: Shape


@dataclass(frozen=True, slots=True)
class Weight:
    """A dequantized integer constant, per tensor or per channel along `axis`."""

    values: np.ndarray
    scale: np.ndarray  # (1,) or (channels,) float32
    zero_point: np.ndarray  # like `scale`
    axis: int

    @property
    def shape(self) -> Shape:
        """Its logical shape."""
        return tuple(self.values.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operator applied to values. An element of several results is a "TupleGetItem"."""

    operator: str  # as Relax names it: "relax.nn.conv2d"
    operands: tuple[Any, ...]
    attrs: Any
    shape: Shape  # () where it has several results


@dataclass(frozen=True, slots=True)
class Ending:
    """A value without the reshapes and clamps that follow it, and the real limits of these."""

    value: Any
    limits: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Island:
    """What one quantize ends.

    An operator module reads it from its last value backwards: `last` is the value itself,
    `ending` the same without the reshapes and clamps (ReLU, clip) behind it, which most
    layers leave to `Claim.limits`. From there it follows `Node.operands` as far as it likes: a
    chain of any number of operators may be one layer, if the module claims all of it.
    """

    last: Any
    ending: Ending
    output: QuantizedTensor
    rounding: str
    code: Callable[[], tuple[Any, list[Any]]]  # float code of `last`, see `reference.host.cut`

    def sources(self) -> tuple[Source, ...]:
        """Dequantized activations that the island starts from, each once, in reading order."""
        found: dict[Source, None] = {}
        for value in walked(self.last):
            if isinstance(value, Source):
                found.setdefault(value)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Claim:
    """What an operator module recognised an island to be.

    `core` is the module's own dataclass, which only the module reads. `sources` are the inputs in
    the order in which its kernel takes them, `shape` is the logical shape of what the kernel
    computes, before reshapes to that of the output. `limits` are real clamp limits afterwards.
    """

    op: str  # what reports call the layer: "conv2d"
    core: Any
    sources: tuple[Source, ...]
    shape: Shape
    limits: tuple[float, float] = UNLIMITED
    macs: int = 0


def shape_of(expression: Any) -> Shape:
    """Static shape of a Relax expression; `ModelError` where it is dynamic."""
    try:
        return tuple(int(extent) for extent in expression.ty.shape)
    except (TypeError, ValueError) as error:
        raise ModelError(f"a tensor of the model has a dynamic shape: {expression.ty}") from error


def constant_value(expression: Any) -> np.ndarray | None:
    """A constant, number or shape as NumPy, or None where the expression is something else."""
    if type(expression).__name__ == "ShapeExpr":
        return np.asarray([int(extent) for extent in expression.values], np.int64)
    data = getattr(expression, "value", None)
    if data is None:
        return None
    return np.asarray(data.numpy() if hasattr(data, "numpy") else data)


def applied(operator: str, call: Any, operands: tuple[Any, ...], shape: Shape) -> Any:
    """One float operator applied to values; reshapes and moves of constants are done at once."""
    first = operands[0]
    if isinstance(first, Source) and operator in RESHAPES:
        return replace(first, shape=shape)
    if isinstance(first, Weight):
        if operator == "relax.permute_dims":
            return _turned(first, _axes(call, first.values.ndim))
        if operator in RESHAPES and first.scale.size in (1, first.values.size):
            axis = shape.index(first.values.size) if first.scale.size > 1 else 0
            return replace(first, values=first.values.reshape(shape), axis=axis)
    if isinstance(first, np.ndarray):
        if operator in RESHAPES:
            return first.reshape(shape)
        if operator == "relax.permute_dims":
            return first.transpose(_axes(call, first.ndim))
        if operator == "relax.astype":
            return first.astype(str(call.attrs.dtype))
    return Node(operator, operands, call.attrs, shape)


def _axes(call: Any, rank: int) -> list[int]:
    given = call.attrs.axes
    return list(range(rank))[::-1] if given is None else [int(axis) % rank for axis in given]


def _turned(weight: Weight, axes: list[int]) -> Weight:
    axis = axes.index(weight.axis % weight.values.ndim)
    return replace(weight, values=weight.values.transpose(axes), axis=axis)


def ending_of(value: Any) -> Ending:
    """Peel reshapes and clamps off; of two limits the one nearer to the output wins."""
    low, high = UNLIMITED
    while isinstance(value, Node) and value.operands:
        if value.operator in RESHAPES:
            value = value.operands[0]
            continue
        bounds = _clamp(value)
        if bounds is None:
            break
        low, high = (min(max(bound, low), high) for bound in bounds)
        value = value.operands[0]
    return Ending(value, (low, high))


def _clamp(node: Node) -> tuple[float, float] | None:
    if node.operator == "relax.clip":
        low, high = node.operands[1:3]
        return (float(low), float(high))
    return _CLAMPS.get(node.operator)


def walked(value: Any) -> Iterator[Any]:
    """A value and all that it is made of, each node once, operands after their user."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            waiting.extend(reversed(one))
            continue
        if isinstance(one, Node):
            if id(one) in seen:
                continue
            seen.add(id(one))
            waiting.extend(reversed(one.operands))
        yield one


def operator_of(value: Any) -> str:
    """What to call a float value by: its last operator."""
    if isinstance(value, Node):
        inner = value.operator == "TupleGetItem"
        return operator_of(value.operands[0]) if inner else _short(value.operator)
    return "requantize" if isinstance(value, Source) else "constant"


def _short(operator: str) -> str:
    return operator.removeprefix("relax.").removeprefix("nn.")
