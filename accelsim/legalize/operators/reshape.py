"""Reshapes that move no byte of the NPU's layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelsim.legalize.expressions import Arguments, output
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.operators import Operator

_STARTS = ("relax.reshape", "relax.flatten", "relax.squeeze")


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A reshape between (n, c, 1, 1) and (n, c)."""
    leaf = leaf_of(frame, node.args[0])
    if leaf is None or not leaf.quantization.same_levels(frame.quantization) or frame.clipped:
        return Rejection("it reshapes something that is not a quantized activation")
    if leaf.var not in frame.operators:
        return Rejection("it reshapes a tensor that is on the host")
    before, after = _vector(leaf.shape, leaf.layout), _vector(frame.shape, frame.layout)
    if before is None or before != after:
        return Rejection(f"it reshapes {leaf.shape} to {frame.shape}, which reorders the elements")
    return operator_of(frame, "reshape", (leaf,), None)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The same bytes."""
    (x,) = arguments.activations
    return output(op, x, "reshape")


def _vector(shape: Sequence[int], layout: str) -> tuple[int, int] | None:
    """(n, c) of a tensor without height and width."""
    if not layout:
        return None
    n, height, width, channels = nhwc(shape, layout)
    return (n, channels) if height == width == 1 else None


OPERATOR = Operator(("reshape",), _STARTS, None, read, expression)
