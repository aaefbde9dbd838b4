"""Sums of two quantized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Add
from accelsim.legalize.expressions import (
    Activation,
    Arguments,
    clamped,
    clamped_integer,
    output,
    output_shape,
)
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.qnnpack import fixed_add, reason_multiplier_unusable


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """The sum of two quantized tensors of equal shapes."""
    a, b = (leaf_of(frame, argument) for argument in node.args)
    if a is None or b is None:
        return None
    if a.shape != b.shape or not a.layout:
        return Rejection(f"it adds shapes {a.shape} and {b.shape}, which must be equal")
    out = frame.quantization
    inverse = np.float32(1.0) / out.scale
    used = np.array([a.quantization.scale, b.quantization.scale, inverse], np.float32)
    reason = reason_multiplier_unusable(used)
    if reason is not None:
        return Rejection(reason)
    fixed = None
    if frame.rounding == "qnnpack":
        fixed = fixed_add(a.quantization.scale, b.quantization.scale, out.scale)
    low, high = frame.int8_limits
    compute = Add(
        a_zero_point=a.quantization.int8_zero_point,
        b_zero_point=b.quantization.int8_zero_point,
        a_scale=a.quantization.scale,
        b_scale=b.quantization.scale,
        inverse_output_scale=inverse,
        zero_point=out.int8_zero_point,
        clamp_min=low,
        clamp_max=high,
        fixed=fixed,
    )
    return operator_of(frame, "add", (a, b), compute)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The sum, in float32 or in the integers of `FixedAdd`."""
    a, b = arguments.activations
    add = arguments.values
    return _float(op, a, b, add) if add.fixed is None else _fixed(op, a, b, add)


def _float(op: IntegerOp, a: Activation, b: Activation, add: Any) -> Any:
    # Each product is a stage of its own, so that no compiler fuses it into a multiply-add.
    left = _term(op, a, add.a_zero_point, add.a_scale, "left")
    right = _term(op, b, add.b_zero_point, add.b_scale, "right")

    def total(*index: Any) -> Any:
        value = (left(*index) + right(*index)) * add.inverse_output_scale
        return clamped(tirx.nearbyint(value), add)

    return output(op, total)


def _term(op: IntegerOp, x: Activation, zero_point: Any, scale: Any, name: str) -> Any:
    """(x - zero_point) · scale of one side, (n, h, w, c)."""
    return te.compute(
        output_shape(op),
        lambda *index: (x(*index).astype("int32") - zero_point).astype("float32") * scale,
        name=name,
    )


def _fixed(op: IntegerOp, a: Activation, b: Activation, add: Any) -> Any:
    """(Σ (x - zero_point) · multiplier) / 2^shift, ties away from zero, all in int32."""

    def total(*index: Any) -> Any:
        left = (a(*index).astype("int32") - add.a_zero_point) * add.fixed.a_multiplier
        right = (b(*index).astype("int32") - add.b_zero_point) * add.fixed.b_multiplier
        value = left + right
        magnitude = tirx.max(value, -value)
        # One bit below the point is kept, then rounded up: the magnitude alone may need 31 bits.
        steps = ((magnitude >> (add.fixed.shift - 1)) + 1) >> 1
        return clamped_integer(tirx.if_then_else(value < 0, -steps, steps), add)

    return output(op, total)


OPERATOR = Operator(("add",), ("relax.add",), Add, read, expression)
