"""The two operands of an elementwise operator, broadcast as PyTorch does.

What comes in: a node and its frame. What goes out: a `Pair` of quantized operands, the second one
perhaps a constant in (n, h, w, c). It must not know which operator they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.artifacts import F32, I8
from accelsim.legalize.expressions import Activation, Arguments
from accelsim.legalize.frame import ConstantLeaf, Frame, Leaf, constant_leaf_of, leaf_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import Quantization, Rejection
from accelsim.legalize.layout import AXES
from accelsim.spec.arithmetic import MULTIPLIER_MAX, MULTIPLIER_MIN

Element = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """Operands a and b; `constant` stands for b where there is one, and `leaves` lacks it.

    `swapped` where a constant stood first in the graph, so that a is the second operand.
    """

    leaves: tuple[Leaf, ...]
    a: Quantization
    b: Quantization
    constant: I8 | None
    swapped: bool


def pair_of(frame: Frame, node: Node) -> Pair | Rejection | None:
    """The operands of a node; None where they are not two quantized tensors."""
    if len(node.args) != 2:
        return None
    found = [leaf_of(frame, one) or constant_leaf_of(frame, one) for one in node.args]
    swapped = isinstance(found[0], ConstantLeaf)
    first, second = found[::-1] if swapped else found
    if not isinstance(first, Leaf) or second is None:
        return None
    for one in (first, second):
        shape = one.shape if isinstance(one, Leaf) else one.values.shape
        if not _broadcasts(shape, frame.shape, exact=isinstance(one, Leaf)):
            return Rejection(f"its operand of shape {shape} is broadcast to {frame.shape}")
    if not frame.layout or any(
        not leaf.layout or leaf.layout != frame.layout
        for leaf in (first, second)
        if isinstance(leaf, Leaf)
    ):
        return Rejection("its tensors have their channels on different axes")
    if isinstance(second, Leaf):
        return Pair((first, second), first.quantization, second.quantization, None, False)
    constant = _nhwc(second.values, frame)
    if constant.shape[0] != 1:
        return Rejection(f"its constant differs between the {constant.shape[0]} images of a batch")
    return Pair((first,), first.quantization, second.quantization, constant, swapped)


def biased_of(frame: Frame, node: Node) -> tuple[Pair, F32] | None:
    """A quantized operand and real numbers, one a channel: their signs as b, and their sizes.

    None of TFLite, which has no such sum, and where a number is beyond float32's multipliers.
    """
    if len(node.args) != 2 or frame.rounding == "tflite":
        return None
    found = [leaf_of(frame, one) for one in node.args]
    swapped = found[0] is None
    leaf, other = (found[1], node.args[0]) if swapped else (found[0], node.args[1])
    reals = frame.graph.real_constant(other)
    if leaf is None or reals is None or leaf.shape != frame.shape or leaf.layout != frame.layout:
        return None
    channels = leaf.shape[leaf.layout.index("c")] if leaf.layout else 0
    axis = (1,) * (len(leaf.shape) - reals.ndim) + reals.shape
    if reals.size != channels or channels < 2 or len(axis) != len(leaf.shape):
        return None
    if axis[leaf.layout.index("c")] != channels or not np.isfinite(reals).all():
        return None
    flat = reals.reshape(-1).astype(np.float32)
    flat = np.where(np.abs(flat) < MULTIPLIER_MIN, np.float32(0), flat)
    if np.abs(flat).max() > MULTIPLIER_MAX:
        return None
    signs = np.sign(flat).astype(np.int8).reshape(1, 1, 1, channels)
    one = Quantization(np.float32(1), 0, "int8", (-1, 1))
    sizes = np.where(flat == 0, np.float32(1), np.abs(flat)).astype(np.float32)
    return Pair((leaf,), leaf.quantization, one, signs, swapped), sizes


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...], *, exact: bool) -> bool:
    """Whether a shape has axes of 1 or of the target's size; a leaf has as many axes, too."""
    if len(shape) > len(target) or (exact and len(shape) != len(target)):
        return False
    tail = target[len(target) - len(shape) :]
    return all(size in (1, full) for size, full in zip(shape, tail, strict=True))


def _nhwc(values: I8, frame: Frame) -> I8:
    """A constant as (n, h, w, c) with 1 where it is broadcast."""
    rank = len(frame.layout)
    full = values.reshape((1,) * (rank - values.ndim) + values.shape)
    order = [frame.layout.index(axis) for axis in AXES if axis in frame.layout]
    missing = tuple(place for place, axis in enumerate(AXES) if axis not in frame.layout)
    return np.ascontiguousarray(np.expand_dims(full.transpose(order), missing))


def elements(arguments: Arguments, constant: I8 | None) -> tuple[Element, Element]:
    """Both operands as int8 elements at (n, h, w, c) of the output, constants included."""
    a = element_of(arguments.activations[0])
    if constant is None:
        return a, element_of(arguments.activations[1])
    tensor, shape = arguments.values.constant, constant.shape

    def of_constant(*index: Any) -> Any:
        return tensor(*(0 if size == 1 else i for i, size in zip(index, shape, strict=True)))

    return a, of_constant


def element_of(x: Activation) -> Element:
    """An operand's int8 element at (n, h, w, c) of the output, where it may be broadcast."""
    return lambda *index: x(
        *(0 if int(size) == 1 else i for i, size in zip(index, x.shape, strict=True))
    )
