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


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """What an operator joins; a `constant`, centred int32, is the second operand."""

    operator: str  # as Relax names it
    constant: np.ndarray | None = None
    constant_scale: np.float32 | None = None


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
    if not isinstance(second, Weight) or second.scale.size != 1:
        return None
    if not _broadcasts(second.shape, node.shape, exact=False) or _differs_by_image(second, node):
        return None
    centred = second.values.astype(np.int32) - second.zero_point.astype(np.int32).reshape(())
    padded = centred.reshape((1,) * (len(node.shape) - centred.ndim) + centred.shape)
    scale = np.float32(second.scale.reshape(()))
    return Pair(node.operator, padded, scale), (first,)


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
