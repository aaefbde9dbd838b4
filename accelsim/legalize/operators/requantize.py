"""Changes of scale, and clips that no operator before them could absorb: 1×1 sum pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelsim.artifacts import Pool2d
from accelsim.legalize.expressions import Arguments, output, requantized
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.rescale import rescaling


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A dequantize followed by clips and a quantize."""
    leaf = leaf_of(frame, node.var)
    if leaf is None:
        return None
    if not leaf.layout:
        return Rejection(f"its tensor of shape {leaf.shape} is neither (n, c, h, w) nor (n, c)")
    source, same = leaf.quantization, leaf.quantization.same_levels(frame.quantization)
    found = rescaling(
        source, frame.quantization, frame.rounding, frame.int8_limits, single=frame.clipped
    )
    if isinstance(found, str):
        return Rejection(found)
    channels = leaf.shape[leaf.layout.index("c")]
    shift = None if found.shift is None else np.repeat(found.shift, channels)
    multiplier: Any = np.repeat(found.multiplier, channels)
    requantize = replace(found, multiplier=multiplier, shift=shift)
    compute = Pool2d(
        kind="sum",
        kernel=(1, 1),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        input_zero_point=source.int8_zero_point,
        requantize=requantize,
    )
    name = "clip" if same else "requantize"
    return operator_of(frame, name, (leaf,), compute, only_clamps=same)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """requantize(x - input_zero_point)."""
    (x,) = arguments.activations
    pool = arguments.values

    def element(*index: Any) -> Any:
        centred = x(*index).astype("int32") - pool.input_zero_point
        return requantized(centred, pool.requantize, index[3])

    return output(op, element, op.op)


OPERATOR = Operator(("requantize", "clip"), ("relax.dequantize",), Pool2d, read, expression)
