"""Elementwise islands (add, clip, requantize, reshape), and what every reader of an island needs.

What comes in: the last float operator of an island and a `Frame` with its output. What goes out: an
`IntegerOp`, a `Rejection`, or None where the island is of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.artifacts import Add, Pool2d, Requantize
from accelsim.errors import ModelError
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.operators import IntegerOp, Quantization, Rejection
from accelsim.legalize.qnnpack import (
    fixed_add,
    reason_multiplier_unusable,
    requantize_multiplier,
)

_RANGES = {"uint8": (0, 255), "int8": (-128, 127)}


@dataclass(frozen=True, slots=True)
class Frame:
    """The output of an island: its name, variable, shape and quantization with clamp limits."""

    graph: Graph
    name: str
    output: Any
    shape: tuple[int, ...]
    quantization: Quantization  # limits include ReLU and clip
    clipped: bool  # whether the island has a ReLU or clip
    operators: dict[Any, IntegerOp]  # what was read so far
    rounding: str  # "fp32" or "qnnpack", see `QuantizedModel`

    @property
    def int8_limits(self) -> tuple[int, int]:
        """Clamp limits in the NPU's int8 domain."""
        low, high = self.quantization.limits
        return low - self.quantization.shift, high - self.quantization.shift


@dataclass(frozen=True, slots=True)
class Leaf:
    """A dequantized activation: the quantized variable behind it."""

    var: Any
    shape: tuple[int, ...]
    quantization: Quantization


def quantization_of(graph: Graph, node: Node, output: Node) -> Quantization | None:
    """The quantization of a quantize (or, with `output` = `node`, of a dequantize); None if odd.

    Raises ModelError where the quantized dtype is neither int8 nor uint8.
    """
    scale, zero_point = graph.constant(node.args[1]), graph.constant(node.args[2])
    dtype = node.dtype if node.op == "relax.quantize" else str(node.args[0].ty.dtype)
    if dtype not in _RANGES:
        raise ModelError(
            f"Layer {node.name!r} is quantized to {dtype}; activations must be int8 or uint8."
        )
    if scale is None or zero_point is None or scale.size != 1 or zero_point.size != 1:
        return None
    limits = _RANGES[dtype]
    if output is not node:
        low, high = (int(getattr(bound, "value", bound)) for bound in output.args[1:3])
        limits = (max(limits[0], low), min(limits[1], high))
    return Quantization(np.float32(scale.item()), int(zero_point.item()), dtype, limits)


def leaf_of(graph: Graph, expr: Any) -> Leaf | None:
    """The quantized variable that `expr` dequantizes, or None."""
    node = graph.producer(expr)
    if node is None or node.op != "relax.dequantize" or graph.constant(node.args[0]) is not None:
        return None
    quantization = quantization_of(graph, node, node)
    if quantization is None:
        return None
    return Leaf(node.args[0], node.shape, quantization)


def read_add(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """The sum of two quantized tensors."""
    if node.op != "relax.add":
        return None
    a, b = (leaf_of(frame.graph, argument) for argument in node.args)
    if a is None or b is None:
        return Rejection(_unknown_operand(frame.graph, node))
    if a.shape != b.shape or len(a.shape) not in (2, 4):
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


def read_reshape(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A reshape between (n, c, 1, 1) and (n, c), which moves no byte of the NPU's layout."""
    if node.op not in ("relax.reshape", "relax.flatten", "relax.squeeze"):
        return None
    leaf = leaf_of(frame.graph, node.args[0])
    if leaf is None or not leaf.quantization.same_levels(frame.quantization) or frame.clipped:
        return Rejection("it reshapes something that is not a quantized activation")
    if leaf.var not in frame.operators:
        return Rejection("it reshapes a tensor that is on the host")
    if _vector_shape(leaf.shape) is None or _vector_shape(leaf.shape) != _vector_shape(frame.shape):
        return Rejection(f"it reshapes {leaf.shape} to {frame.shape}, which reorders the elements")
    return operator_of(frame, "reshape", (leaf,), None)


def read_requantize(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A dequantize followed by clips and a quantize: a 1×1 sum pool with a multiplier."""
    leaf = leaf_of(frame.graph, node.var)
    if leaf is None:
        return None
    if len(leaf.shape) not in (2, 4):
        return Rejection(f"its tensor of shape {leaf.shape} is neither (n, c, h, w) nor (n, c)")
    same = leaf.quantization.same_levels(frame.quantization)
    source = leaf.quantization
    multiplier = requantize_multiplier(
        source.scale, source.int8_zero_point, frame.quantization.scale
    )
    if multiplier is None:
        return Rejection("no single multiplier rounds as its two scales do")
    vector = np.full(leaf.shape[1], np.float32(1.0) if same else multiplier, np.float32)
    reason = reason_multiplier_unusable(vector)
    if reason is not None:
        return Rejection(reason)
    low, high = frame.int8_limits
    compute = Pool2d(
        kind="sum",
        kernel=(1, 1),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        input_zero_point=source.int8_zero_point,
        requantize=Requantize(vector, frame.quantization.int8_zero_point, low, high),
    )
    return operator_of(frame, "clip" if same else "requantize", (leaf,), compute)


def operator_of(frame: Frame, op: str, leaves: tuple[Leaf, ...], compute: Any) -> IntegerOp:
    """An integer operator with this frame's output."""
    return IntegerOp(
        op=op,
        name=frame.name,
        layers=(frame.name,),
        inputs=tuple(leaf.var for leaf in leaves),
        output=frame.output,
        shape=frame.shape,
        input_quantization=tuple(leaf.quantization for leaf in leaves),
        quantization=frame.quantization,
        compute=compute,
    )


def _unknown_operand(graph: Graph, node: Node) -> str:
    """Why an add is no sum of two quantized activations."""
    for argument in node.args:
        producer = graph.producer(argument)
        known = ("relax.dequantize", "relax.reshape", "constant")
        if producer is not None and producer.op not in known:
            return f"{producer.op.removeprefix('relax.')} has no integer form on the NPU"
    return "it adds something that is not a quantized activation"


def _vector_shape(shape: tuple[int, ...]) -> tuple[int, int] | None:
    if len(shape) == 2:
        return shape[0], shape[1]
    if len(shape) == 4 and shape[2:] == (1, 1):
        return shape[0], shape[1]
    return None
