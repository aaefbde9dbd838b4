"""Sums and differences of two quantized tensors, or of a tensor and a constant.

A constant of real numbers, one a channel, is the products of its signs and its sizes, which are
scales: so it is added as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Add, FixedAdd, TfliteAdd
from accelsim.legalize.expressions import (
    Arguments,
    clamped,
    clamped_integer,
    output,
    output_shape,
)
from accelsim.legalize.frame import Frame, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.pairs import Element, Pair, biased_of, elements, pair_of
from accelsim.legalize.qnnpack import fixed_add, reason_multiplier_unusable
from accelsim.legalize.rescale import fixed_point
from accelsim.legalize.rounding import scaled_tflite
from accelsim.spec.arithmetic import INT32_MIN, TFLITE_ADD_SHIFT


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """The sum or difference of two quantized operands."""
    pair = pair_of(frame, node)
    biased = biased_of(frame, node) if pair is None else None
    if biased is not None:
        pair = biased[0]
    if pair is None or isinstance(pair, Rejection):
        return pair
    subtract = node.op == "relax.subtract"
    if subtract and pair.swapped:
        return Rejection("it subtracts from a constant")
    out = frame.quantization
    inverse = np.float32(1.0) / out.scale
    used = np.array([pair.a.scale, pair.b.scale, inverse], np.float32)
    reason = reason_multiplier_unusable(used)
    if reason is not None:
        return Rejection(reason)
    fixed, tflite = None, None
    if frame.rounding == "tflite":
        tflite = tflite_add(pair, out.scale)
        if tflite is None:
            return Rejection("its scales differ by more than the mantissas of TFLite express")
    elif frame.rounding == "qnnpack" and biased is None and not subtract:
        # PyTorch has no quantized difference, and no sum with real numbers.
        fixed = fixed_add(pair.a.scale, pair.b.scale, out.scale)
    low, high = frame.int8_limits
    compute = Add(
        a_zero_point=pair.a.int8_zero_point,
        b_zero_point=pair.b.int8_zero_point,
        a_scale=pair.a.scale,
        b_scale=pair.b.scale,
        inverse_output_scale=inverse,
        zero_point=out.int8_zero_point,
        clamp_min=low,
        clamp_max=high,
        fixed=fixed,
        tflite=tflite,
        subtract=subtract,
        constant=pair.constant,
        b_scales=None if biased is None else biased[1],
    )
    return operator_of(frame, "subtract" if subtract else "add", pair.leaves, compute)


def tflite_add(pair: Pair, output_scale: np.float32) -> TfliteAdd | None:
    """TFLite's parameters: operands relative to twice the larger scale, then the sum's.

    Its C code divides doubles but for the product of 2^20 and the output's scale, a float32.
    """
    twice = 2 * max(float(pair.a.scale), float(pair.b.scale))
    below = float(np.float32(1 << TFLITE_ADD_SHIFT) * output_scale)
    reals = (float(pair.a.scale) / twice, float(pair.b.scale) / twice, twice / below)
    (a, a_shift), (b, b_shift), (m, shift) = (fixed_point(real) for real in reals)
    return TfliteAdd(a, b, m, a_shift, b_shift, shift) if a and b and m else None


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The sum, in float32 or in the integers of `FixedAdd` or `TfliteAdd`."""
    a, b = elements(arguments, op.compute.constant)
    add = arguments.values
    if add.tflite is not None:
        return _tflite(op, a, b, add)
    return _float(op, a, b, add) if add.fixed is None else _fixed(op, a, b, add)


def _float(op: IntegerOp, a: Element, b: Element, add: Any) -> Any:
    # Each product is a stage of its own, so that no compiler fuses it into a multiply-add.
    left = _term(op, a, add.a_zero_point, lambda _: add.a_scale, "left")
    scales = add.b_scales
    each = (lambda _: add.b_scale) if scales is None else scales
    right = _term(op, b, add.b_zero_point, each, "right")

    def total(*index: Any) -> Any:
        one, other = left(*index), right(*index)
        value = (one - other if add.subtract else one + other) * add.inverse_output_scale
        return clamped(tirx.nearbyint(value), add)

    return output(op, total)


def _term(
    op: IntegerOp, x: Element, zero_point: Any, scale: Callable[[Any], Any], name: str
) -> Any:
    """(x - zero_point) · scale(c) of one side, (n, h, w, c)."""

    def element(*index: Any) -> Any:
        return (x(*index).astype("int32") - zero_point).astype("float32") * scale(index[3])

    return te.compute(output_shape(op), element, name=name)


def _fixed(op: IntegerOp, a: Element, b: Element, add: Any) -> Any:
    """(Σ (x - zero_point) · multiplier) / 2^shift, ties away from zero, all in int32."""
    fixed: FixedAdd = add.fixed

    def total(*index: Any) -> Any:
        left = (a(*index).astype("int32") - add.a_zero_point) * fixed.a_multiplier
        right = (b(*index).astype("int32") - add.b_zero_point) * fixed.b_multiplier
        value = left - right if add.subtract else left + right
        magnitude = tirx.max(value, -value)
        # One bit below the point is kept, then rounded up: the magnitude alone may need 31 bits.
        steps = ((magnitude >> (fixed.shift - 1)) + 1) >> 1
        return clamped_integer(tirx.if_then_else(value < 0, -steps, steps), add)

    return output(op, total)


def _tflite(op: IntegerOp, a: Element, b: Element, add: Any) -> Any:
    """Both operands scaled, then their sum, modulo 2^32, scaled again; all in int64."""
    words: Any = add.tflite

    # Each operand is a stage of its own: scaling repeats its operand many times in an expression.
    def scaled(x: Element, zero_point: Any, mantissa: Any, shift: Any, name: str) -> Any:
        def element(*index: Any) -> Any:
            value = (x(*index).astype("int32") - zero_point).astype("int64") << TFLITE_ADD_SHIFT
            return scaled_tflite(value, mantissa.astype("int64"), shift.astype("int64"))

        return te.compute(output_shape(op), element, name=name)

    left = scaled(a, add.a_zero_point, words.a_mantissa, words.a_shift, "left")
    right = scaled(b, add.b_zero_point, words.b_mantissa, words.b_shift, "right")

    def total(*index: Any) -> Any:
        one, other = left(*index), right(*index)
        value = one - other if add.subtract else one + other
        low = tirx.const(INT32_MIN, "int64")
        wrapped = ((value - low) & tirx.const(0xFFFFFFFF, "int64")) + low
        ends = words.mantissa.astype("int64"), words.shift.astype("int64")
        return clamped_integer(scaled_tflite(wrapped, *ends), add)

    return output(op, total)


OPERATOR = Operator(("add", "subtract"), ("relax.add", "relax.subtract"), Add, read, expression)
