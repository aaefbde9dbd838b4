"""PReLU: values below zero times a slope of their channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import F32, PRelu
from accelsim.legalize.expressions import Arguments, clamped, output, output_shape
from accelsim.legalize.frame import Frame, Leaf, constant_leaf_of, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.qnnpack import reason_multiplier_unusable
from accelsim.legalize.slopes import slope_multipliers

LARGEST_INVERSE = 2.0**64  # of an output scale: products with a negligible one then vanish


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A PReLU of a quantized tensor with one slope, or one a channel."""
    leaf = leaf_of(frame, node.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if not leaf.layout or int(node.value.attrs.axis) % len(leaf.shape) != leaf.layout.index("c"):
        return Rejection("its slopes are not along the channels")
    found = _multipliers(frame, node, leaf)
    if isinstance(found, str):
        return Rejection(found)
    scale, below, inverse = found
    out = frame.quantization
    if not np.all(np.isfinite(below)):
        return Rejection("a slope is not a number")
    sizes = np.abs(below[below != 0])
    reason = reason_multiplier_unusable(np.array([scale, inverse, *sizes], np.float32))
    if reason is not None:
        return Rejection(reason)
    if not np.all(below > 0) and not 1 / LARGEST_INVERSE <= inverse <= LARGEST_INVERSE:
        return Rejection(f"a slope is not positive, and its output scale is {out.scale:g}")
    low, high = frame.int8_limits
    compute = PRelu(
        input_zero_point=leaf.quantization.int8_zero_point,
        positive_scale=scale,
        negative_scale=below,
        inverse_output_scale=inverse,
        zero_point=out.int8_zero_point,
        clamp_min=low,
        clamp_max=high,
    )
    return operator_of(frame, "prelu", (leaf,), compute)


def _multipliers(frame: Frame, node: Node, leaf: Leaf) -> tuple[np.float32, F32, np.float32] | str:
    """Scales above and below zero, (channels,), and the inverse of the output's."""
    channels = leaf.shape[leaf.layout.index("c")]
    if frame.rounding == "tflite":
        stored = constant_leaf_of(frame, node.args[1])
        if stored is None:
            return "its slopes are not quantized constants"
        found = slope_multipliers(leaf.quantization, frame.quantization, stored, channels)
        return found if isinstance(found, str) else (*found, np.float32(1))
    slopes = frame.graph.constant(node.args[1])
    if slopes is None:
        return "its slopes are computed at run time"
    slope = np.broadcast_to(slopes.reshape(-1).astype(np.float32), (channels,))
    scale, inverse = leaf.quantization.scale, np.float32(1) / frame.quantization.scale
    return scale, np.ascontiguousarray(scale * slope), inverse


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """rint((max(x - z, 0)·s + min(x - z, 0)·t) · (1/so)) + zo."""
    (x,) = arguments.activations
    prelu = arguments.values

    def bent(*index: Any) -> Any:
        centred = x(*index).astype("int32") - prelu.input_zero_point
        scale = tirx.if_then_else(centred < 0, prelu.negative_scale(index[3]), prelu.positive_scale)
        return centred.astype("float32") * scale

    # A stage of its own, so that both products are rounded.
    reals = te.compute(output_shape(op), bent, name="bent")

    def element(*index: Any) -> Any:
        return clamped(tirx.nearbyint(reals(*index) * prelu.inverse_output_scale), prelu)

    return output(op, element, "prelu")


OPERATOR = Operator(("prelu",), ("relax.nn.prelu",), PRelu, read, expression)
