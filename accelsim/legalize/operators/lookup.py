"""Any elementwise function of one quantized tensor: a table of its 256 results."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import Lookup
from accelsim.legalize.expressions import Arguments, output
from accelsim.legalize.frame import Frame, operator_of
from accelsim.legalize.functions import FUNCTIONS, Unusable, results
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Quantization, Rejection
from accelsim.legalize.operators import Operator


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """Float operators whose only operands are one quantized tensor and numbers."""
    found = results(frame, node)
    if found is None:
        return None
    if isinstance(found, Unusable):
        return Rejection(found.reason)
    if not found.leaf.layout:
        return Rejection(f"its tensor has {len(found.leaf.shape)} axes, the NPU has 4")
    if frame.rounding == "tflite":
        return Rejection(f"TFLite's {found.function} has integer arithmetic of its own")
    table = _quantized(found.reals, frame.quantization, frame.rounding)
    low, high = frame.int8_limits
    compute = Lookup(np.clip(table, low, high).astype(np.int8))
    return operator_of(frame, found.function, (found.leaf,), compute)


def _quantized(reals: Any, target: Quantization, rounding: str) -> Any:
    """Real results as steps of the output, before limits; int8 domain."""
    quotient = rounding == "onnxruntime"  # which divides where PyTorch multiplies
    with np.errstate(over="ignore"):
        steps = reals / target.scale if quotient else reals * (np.float32(1) / target.scale)
    return np.clip(np.rint(steps), -(2.0**20), 2.0**20) + target.int8_zero_point


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """table[x + 128]."""
    (x,) = arguments.activations
    table = arguments.values.table
    return output(op, lambda *index: table(x(*index).astype("int32") + 128), op.op)


OPERATOR = Operator(
    tuple(dict.fromkeys(FUNCTIONS.values())), tuple(FUNCTIONS), Lookup, read, expression
)
