"""Any elementwise function of one quantized tensor: a table of its 256 results."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import Lookup
from accelsim.legalize.expressions import Arguments, output
from accelsim.legalize.frame import Frame, operator_of
from accelsim.legalize.functions import FUNCTIONS, NAMED, Unusable, results
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.tables import result_steps


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """Float operators whose only operands are one quantized tensor and numbers."""
    found = results(frame, node)
    if found is None:
        return None
    if isinstance(found, Unusable):
        return Rejection(found.reason)
    steps = result_steps(found, frame.quantization, frame.rounding)
    if steps is None:
        return Rejection(f"TFLite's integers of {found.function} are not known")
    low, high = frame.int8_limits
    compute = Lookup(np.clip(steps, low, high).astype(np.int8))
    return operator_of(frame, found.function, (found.leaf,), compute)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """table[x + 128]."""
    (x,) = arguments.activations
    table = arguments.values.table
    return output(op, lambda *index: table(x(*index).astype("int32") + 128), op.op)


OPERATOR = Operator(
    tuple(dict.fromkeys((*FUNCTIONS.values(), *NAMED.values()))),
    tuple(FUNCTIONS),
    Lookup,
    read,
    expression,
)
