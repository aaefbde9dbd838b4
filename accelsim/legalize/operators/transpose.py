"""Permutations of n, h, w and c that no index arrays of single axes express."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import Transpose
from accelsim.legalize.expressions import Arguments, output, output_shape
from accelsim.legalize.frame import Frame, hide, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.movement import STARTS, Move, UnmovedError, move_of
from accelsim.legalize.operators import Operator
from accelsim.legalize.rescale import unchanged
from accelsim.legalize.seen import seen_index, source_of, transposition_of


def renames(move: Move) -> bool:
    """Whether the output has the bytes and the (n, h, w, c) of the only leaf."""
    source = source_of(move)
    if len(move.leaves) != 1 or move.constants or source != move.codes.shape:
        return False
    return np.array_equal(move.codes.reshape(-1), np.arange(move.codes.size))


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A permutation at unchanged levels; pieces are tried before it."""
    for absorb in (True, False):
        try:
            move = move_of(frame, node, absorb=absorb)
        except UnmovedError:
            continue
        compute = transposition_of(move)
        if compute is None:
            continue
        if not unchanged(move.leaves[0].quantization, frame.quantization, frame.int8_limits):
            return Rejection("it changes scale while it moves channels, which takes a step between")
        hide(frame, move.hidden)
        return operator_of(frame, "transpose", move.leaves, compute, absorbed=move.absorbed)
    return None


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The element whose indices are permuted."""
    (x,) = arguments.activations
    axes, own = op.compute.axes, output_shape(op)
    source, target = op.compute.seen or (x.shape, own)

    def element(*index: Any) -> Any:
        places = dict(zip(axes, seen_index(index, own, target), strict=True))
        return x(*seen_index(tuple(places[axis] for axis in range(4)), source, x.shape))

    return output(op, element, op.op)


OPERATOR = Operator(("transpose",), STARTS, Transpose, read, expression)
