"""Batch norm that no convolution absorbs: a depthwise product with 1×1 kernels.

The weight of a channel is 64 or -64, as its factor's sign is, so that the bias is rounded to 1/64
of an input step; of a channel whose factor is zero, it is 0 and the bias has units of 2^-16 output
steps. Factors, multipliers and biases are derived in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import I32, Conv2d, Requantize
from accelsim.legalize.expressions import Arguments
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.operators.convolution import expression as convolution
from accelsim.legalize.qnnpack import reason_accumulator_overflows, reason_multiplier_unusable

WEIGHT = 64
CONSTANT = 2.0**-16  # output steps, of channels with one value
_LARGEST = np.iinfo(np.int32).max


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """The first result of a batch norm of a quantized tensor, with constant statistics."""
    core = frame.graph.producer(node.args[0])
    if core is None or core.op != "relax.nn.batch_norm":
        return None
    if int(node.value.index) != 0:
        return Rejection("it is a statistic of a batch norm")
    leaf, attrs = leaf_of(frame, core.args[0]), core.value.attrs
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if bool(attrs.training):
        return Rejection("its batch norm is in training mode")
    if not leaf.layout or int(attrs.axis) % len(leaf.shape) != leaf.layout.index("c"):
        return Rejection("its statistics are not along the channels")
    if frame.rounding == "tflite":
        return Rejection("TFLite has no batch norm")
    line = _line(frame.graph, core)
    if line is None:
        return Rejection("its statistics are computed at run time")
    (factor, offset), source, target = line, leaf.quantization, frame.quantization
    step = float(source.scale) * np.abs(factor) / WEIGHT
    unit = np.where(factor == 0, CONSTANT * float(target.scale), step)
    multiplier = (unit / float(target.scale)).astype(np.float32)
    reason = reason_multiplier_unusable(multiplier)
    bias = np.rint(offset / np.where(unit == 0, 1.0, unit))
    if reason is None and (not np.isfinite(bias).all() or np.abs(bias).max() > _LARGEST):
        reason = "its offset does not fit int32 at the scale of the accumulator"
    if reason is not None:
        return Rejection(reason)
    weight = (np.sign(factor) * WEIGHT).astype(np.int8).reshape(-1, 1, 1, 1)
    biases: I32 = bias.astype(np.int32)
    reason = reason_accumulator_overflows(weight, 0, biases, source.int8_zero_point)
    if reason is not None:
        return Rejection(reason)
    end = Requantize(multiplier, target.int8_zero_point, *frame.int8_limits)
    compute = Conv2d(weight, biases, source.int8_zero_point, 0, end, depthwise=weight.size > 1)
    return operator_of(frame, "batch_norm", (leaf,), compute)


def _line(graph: Graph, core: Node) -> tuple[Any, Any] | None:
    """Factor and offset of each channel in float64, or None if they are not constants."""
    found = [graph.constant(argument) for argument in core.args[1:5]]
    if any(one is None for one in found):
        return None
    gain, shift, mean, variance = (np.asarray(one, np.float64).reshape(-1) for one in found)
    attrs = core.value.attrs
    factor = 1 / np.sqrt(variance + float(attrs.epsilon))
    factor = factor * gain if attrs.scale else factor
    offset = -mean * factor
    return factor, (offset + shift if attrs.center else offset)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """±64 (x - zx) + bias, requantized."""
    return convolution(op, arguments)


OPERATOR = Operator(("batch_norm",), ("tuple_element",), Conv2d, read, expression)
