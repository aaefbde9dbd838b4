"""Permutations of n, h, w and c that no index arrays of single axes express."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from accelsim.artifacts import Transpose
from accelsim.legalize.expressions import Arguments, output
from accelsim.legalize.frame import Frame, hide, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.movement import STARTS, Move, UnmovedError, move_of
from accelsim.legalize.operators import Operator
from accelsim.legalize.rescale import unchanged

Axes = tuple[int, int, int, int]


def axes_of(move: Move) -> Axes | None:
    """Axis k of the output is axis axes[k] of the only leaf, over (n, h, w, c), or None."""
    if len(move.leaves) != 1 or move.constants:
        return None
    leaf = move.leaves[0]
    shape = nhwc(leaf.shape, leaf.layout)
    if move.codes.size != np.prod(shape):
        return None
    flat = np.arange(move.codes.size, dtype=np.int64).reshape(shape)
    for a, b, c, d in permutations(range(4)):
        turned = flat.transpose(a, b, c, d)
        if turned.shape == move.codes.shape and np.array_equal(turned, move.codes):
            return a, b, c, d
    return None


def renames(move: Move) -> bool:
    """Whether the output has the bytes and the (n, h, w, c) of the only leaf."""
    return axes_of(move) == (0, 1, 2, 3)


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A permutation at unchanged levels; pieces are tried before it."""
    for absorb in (True, False):
        try:
            move = move_of(frame, node, absorb=absorb)
        except UnmovedError:
            continue
        axes = axes_of(move)
        if axes is None:
            continue
        if not unchanged(move.leaves[0].quantization, frame.quantization, frame.int8_limits):
            return Rejection("it changes scale while it moves channels, which takes a step between")
        hide(frame, move.hidden)
        compute = Transpose(axes)
        return operator_of(frame, "transpose", move.leaves, compute, absorbed=move.absorbed)
    return None


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The element whose indices are permuted."""
    (x,) = arguments.activations
    axes = op.compute.axes

    def element(*index: Any) -> Any:
        places = dict(zip(axes, index, strict=True))
        return x(*[places[axis] for axis in range(4)])

    return output(op, element, op.op)


OPERATOR = Operator(("transpose",), STARTS, Transpose, read, expression)
