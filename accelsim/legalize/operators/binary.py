"""Product, minimum and maximum of two quantized tensors, or of a tensor and a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

from accelsim.artifacts import Binary, Requantize
from accelsim.legalize.expressions import Arguments, output, requantized
from accelsim.legalize.frame import Frame, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Quantization, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.pairs import Element, Pair, elements, pair_of
from accelsim.legalize.qnnpack import reason_multiplier_unusable
from accelsim.legalize.rescale import FULL, fixed_point, rescaling

_KINDS = {"relax.multiply": "multiply", "relax.minimum": "minimum", "relax.maximum": "maximum"}


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A product, or the smaller or larger of two operands."""
    pair = pair_of(frame, node)
    if pair is None or isinstance(pair, Rejection):
        return pair
    kind = _KINDS[node.op]
    compute = _product(frame, pair) if kind == "multiply" else _extreme(frame, pair, kind)
    if isinstance(compute, Rejection):
        return compute
    return operator_of(frame, kind, pair.leaves, compute)


def _product(frame: Frame, pair: Pair) -> Binary | Rejection:
    requantize = product_requantize(frame, pair.a.scale, pair.b.scale)
    if isinstance(requantize, Rejection):
        return requantize
    return Binary(
        kind="multiply",
        a_zero_point=pair.a.int8_zero_point,
        b_zero_point=pair.b.int8_zero_point,
        requantize=requantize,
        constant=pair.constant,
    )


def product_requantize(frame: Frame, a: np.float32, b: np.float32) -> Requantize | Rejection:
    """One multiplier from products of steps to output steps.

    PyTorch: float32 (a · b) · (1 / output); TFLite and ONNX Runtime: float32 (a · b) / output,
    TFLite's as a mantissa and a shift, rounded twice.
    """
    zero_point, limits = frame.quantization.int8_zero_point, frame.int8_limits
    scale = frame.quantization.scale
    quotient = (a * b) / scale
    if frame.rounding == "tflite":
        mantissa, shift = fixed_point(float(quotient))
        if mantissa == 0:
            return Rejection(f"its multiplier {quotient:g} is beyond TFLite's mantissas")
        words = np.array([mantissa], np.int32), np.array([shift], np.int32)
        return Requantize(words[0], zero_point, *limits, mode="tflite", shift=words[1])
    exact = quotient if frame.rounding == "onnxruntime" else a * b * (np.float32(1) / scale)
    multiplier = np.array([exact], np.float32)
    reason = reason_multiplier_unusable(multiplier)
    return Requantize(multiplier, zero_point, *limits) if reason is None else Rejection(reason)


def _extreme(frame: Frame, pair: Pair, kind: str) -> Binary | Rejection:
    """Operands in output steps first, where they are not: rounding keeps their order."""
    out, limits = frame.quantization, frame.int8_limits
    zero_point = out.int8_zero_point
    found = [_in_output_steps(frame, one) for one in (pair.a, pair.b)]
    refused = next((one for one in found if isinstance(one, Rejection)), None)
    if refused is not None:
        return refused
    a, b = (one for one in found if not isinstance(one, Rejection))
    return Binary(
        kind=kind,
        a_zero_point=zero_point,
        b_zero_point=zero_point,
        requantize=Requantize(np.ones(1, np.float32), zero_point, *limits),
        constant=pair.constant,
        a_requantize=a,
        b_requantize=b,
        a_source_zero_point=0 if a is None else pair.a.int8_zero_point,
        b_source_zero_point=0 if b is None else pair.b.int8_zero_point,
    )


def _in_output_steps(frame: Frame, source: Quantization) -> Requantize | Rejection | None:
    """How an operand becomes output steps; None where it is in them already."""
    if source.same_levels(frame.quantization):
        return None
    found = rescaling(source, frame.quantization, frame.rounding, FULL)
    return Rejection(found) if isinstance(found, str) else found


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """requantize(kind(a - za, b - zb))."""
    a, b = elements(arguments, op.compute.constant)
    binary = arguments.values
    a = _own(a, binary.a_requantize, binary.a_source_zero_point)
    b = _own(b, binary.b_requantize, binary.b_source_zero_point)

    def element(*index: Any) -> Any:
        left = a(*index).astype("int32") - binary.a_zero_point
        right = b(*index).astype("int32") - binary.b_zero_point
        kinds = {
            "multiply": lambda: left * right,
            "minimum": lambda: tirx.min(left, right),
            "maximum": lambda: tirx.max(left, right),
        }
        return requantized(kinds[op.compute.kind](), binary.requantize, 0)

    return output(op, element, op.op)


def _own(x: Element, requantize: Any, zero_point: Any) -> Element:
    if requantize is None:
        return x
    return lambda *index: requantized(x(*index).astype("int32") - zero_point, requantize, 0)


OPERATOR = Operator(tuple(_KINDS.values()), tuple(_KINDS), Binary, read, expression)
