"""Two operands of an elementwise operator, broadcast: two activations, or one and a constant.

What comes in: the operands of a `Node`. What goes out: a `Pair`, its scales, and the centred
elements of both sides for a kernel. It must not know which operator they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.reference.flow import Node, Source, Weight
from accelsim.reference.kernels import Emitter, Values
from accelsim.reference.network import Shape
from accelsim.reference.site import Site

Element = Callable[[Any], Any]  # of the indices of the core's output
LARGEST = 2.0**100  # a number that is added to a tensor


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """What an operator joins; a `constant`, centred int32, is the second operand.

    So are `reals`, float32 numbers that no levels stand for.
    """

    operator: str  # as Relax names it
    constant: np.ndarray | None = None
    constant_scale: np.float32 | None = None
    reals: np.ndarray | None = None


def pair_of(node: Node) -> tuple[Pair, tuple[Source, ...]] | None:
    """The operands of a node that join element by element, or None.

    A constant that stands first is taken as the second one, but not of a difference.
    """
    first, second = node.operands
    if isinstance(first, Weight) and node.operator != "relax.subtract":
        first, second = second, first
    if not isinstance(first, Source) or not _broadcasts(first.shape, node.shape, exact=True):
        return None
    if isinstance(second, Source):
        fits = _broadcasts(second.shape, node.shape, exact=True)
        return (Pair(node.operator), (first, second)) if fits else None
    if _is_real(second):
        return _with_reals(node, first, second)
    if not isinstance(second, Weight) or second.scale.size != 1:
        return None
    if not _broadcasts(second.shape, node.shape, exact=False) or _differs_by_image(second, node):
        return None
    centred = second.values.astype(np.int32) - second.zero_point.astype(np.int32).reshape(())
    padded = centred.reshape((1,) * (len(node.shape) - centred.ndim) + centred.shape)
    scale = np.float32(second.scale.reshape(()))
    return Pair(node.operator, padded, scale), (first,)


def _is_real(value: object) -> bool:
    """Whether it is a constant of float32 numbers, or of integers beyond 8 bits."""
    if isinstance(value, Weight):
        return value.scale.size == 1 and value.values.dtype.itemsize > 1
    return isinstance(value, np.ndarray) and value.dtype == np.float32


def _with_reals(node: Node, source: Source, value: Any) -> tuple[Pair, tuple[Source, ...]] | None:
    """A sum or difference with a number for each channel of a tensor that is as large as it."""
    if node.operator not in ("relax.add", "relax.subtract") or source.shape != node.shape:
        return None
    if source.shape != source.tensor.shape or source.shape[source.tensor.axis] < 2:
        return None
    if isinstance(value, Weight):
        centred = value.values.astype(np.int64) - value.zero_point.astype(np.int64).reshape(())
        value = centred.astype(np.float32) * np.float32(value.scale.reshape(()))
    each = tuple(
        size if place == source.tensor.axis else 1 for place, size in enumerate(source.shape)
    )
    padded = (1,) * (len(each) - value.ndim) + value.shape
    if padded != each or not np.isfinite(value).all() or np.abs(value).max() > LARGEST:
        return None
    return Pair(node.operator, reals=value.reshape(each)), (source,)


def _broadcasts(shape: Shape, target: Shape, *, exact: bool) -> bool:
    if len(shape) > len(target) or (exact and len(shape) != len(target)):
        return False
    tail = target[len(target) - len(shape) :]
    return all(size in (1, full) for size, full in zip(shape, tail, strict=True))


def _differs_by_image(weight: Weight, node: Node) -> bool:
    return len(weight.shape) == len(node.shape) and weight.shape[0] > 1


def scales_of(site: Site) -> tuple[np.float32, np.float32]:
    """Scales of both operands."""
    pair: Pair = site.layer.core
    second = site.inputs[1].scale if pair.constant_scale is None else pair.constant_scale
    return site.inputs[0].scale, second


def pair_values(site: Site) -> dict[str, np.ndarray]:
    """Parameters that `pair_elements` reads: zero points, and the constant if there is one."""
    values = {
        f"zero_point_{side}": np.array(source.zero_point, np.int32)
        for side, source in enumerate(site.inputs)
    }
    constant = site.layer.core.constant
    return values if constant is None else {**values, "constant": constant}


def pair_tensors(emit: Emitter, x: list[Any], p: Values) -> list[Any]:
    """q - zero point of both operands, int32, each of its own shape."""
    terms = [
        emit.centred(value, p[f"zero_point_{side}"], side, "int32") for side, value in enumerate(x)
    ]
    return [*terms, p["constant"]] if "constant" in p else terms


def at(tensor: Any, index: Any) -> Any:
    """An element of an operand that is broadcast where its axis is 1."""
    places = (0 if int(size) == 1 else i for size, i in zip(tensor.shape, index, strict=True))
    return tensor[tuple(places)]
