"""Rearrangements that move no byte of the NPU's layout."""

from __future__ import annotations

from typing import Any

from accelsim.legalize.expressions import Arguments, output
from accelsim.legalize.frame import Frame, hide, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.movement import STARTS, UnmovedError, move_of
from accelsim.legalize.operators import Operator
from accelsim.legalize.operators.transpose import renames
from accelsim.legalize.rescale import unchanged


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A renaming of a tensor that an operator of the NPU makes."""
    for absorb in (True, False):
        try:
            move = move_of(frame, node, absorb=absorb)
        except UnmovedError:
            continue
        if not move.leaves or not renames(move):
            continue
        leaf = move.leaves[0]
        if leaf.var not in frame.operators:
            return Rejection("it renames a tensor that is on the host")
        if not unchanged(leaf.quantization, frame.quantization, frame.int8_limits):
            return None
        hide(frame, move.hidden)
        return operator_of(frame, "reshape", (leaf,), None, absorbed=move.absorbed)
    return None


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The same elements at the same (n, h, w, c)."""
    (x,) = arguments.activations
    return output(op, x, "reshape")


OPERATOR = Operator(("reshape",), STARTS, None, read, expression)
