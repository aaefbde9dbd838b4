"""What a reader of an operator is given, and the quantized tensors that it may find.

What comes in: a graph and the quantize at the end of an island. What goes out: a `Frame` of the
island's output, the `Leaf`s and `ConstantLeaf`s behind its operands, and the `IntegerOp` that a
reader makes of them. It must not know operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelsim.artifacts import I8
from accelsim.errors import ModelError
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Quantization

_RANGES = {"uint8": (0, 255), "int8": (-128, 127)}


@dataclass(frozen=True, slots=True)
class Frame:
    """The output of an island: its name, variable, shape and quantization with clamp limits."""

    graph: Graph
    name: str
    output: Any
    shape: tuple[int, ...]
    layouts: Mapping[Any, str]  # of every variable, see `legalize.layout`
    quantization: Quantization  # limits include ReLU and clip
    clipped: bool  # whether the island has a ReLU or clip
    operators: dict[Any, IntegerOp]  # what was read so far, by output variable
    rounding: str  # whose rounding the integers follow, see `QuantizedModel`
    hidden: dict[Any, IntegerOp] = field(default_factory=dict)  # taken from `operators`, see `hide`

    @property
    def layout(self) -> str:
        """The output's layout; "" for a rank that the NPU does not have."""
        return self.layouts[self.output]

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
    layout: str  # "" for a rank that the NPU does not have


@dataclass(frozen=True, slots=True)
class ConstantLeaf:
    """A dequantized constant, quantized per tensor, with its values in the NPU's int8 domain."""

    values: I8  # in the graph's layout
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


def leaf_of(frame: Frame, expr: Any) -> Leaf | None:
    """The quantized variable that `expr` dequantizes, or None."""
    graph = frame.graph
    node = graph.producer(expr)
    if node is None or node.op != "relax.dequantize" or graph.constant(node.args[0]) is not None:
        return None
    quantization = quantization_of(graph, node, node)
    if quantization is None:
        return None
    return Leaf(node.args[0], node.shape, quantization, frame.layouts[node.args[0]])


def constant_leaf_of(frame: Frame, expr: Any) -> ConstantLeaf | None:
    """The int8 or uint8 constant that `expr` dequantizes with one scale, or None."""
    graph = frame.graph
    node = graph.producer(expr)
    values = graph.constant(node.args[0]) if node and node.op == "relax.dequantize" else None
    if node is None or values is None or str(values.dtype) not in _RANGES:
        return None
    quantization = quantization_of(graph, node, node)
    if quantization is None:
        return None
    shifted = (values.astype(np.int16) - quantization.shift).astype(np.int8)
    return ConstantLeaf(shifted, quantization)


def hide(frame: Frame, variables: Sequence[Any]) -> None:
    """Take operators away whose results this frame's operator looks through."""
    for var in variables:
        if var in frame.operators:
            frame.hidden[var] = frame.operators.pop(var)


def reveal(frame: Frame, var: Any) -> None:
    """Bring an operator back, if it was hidden: its result is read after all."""
    if var in frame.hidden:
        frame.operators[var] = frame.hidden.pop(var)


def operator_of(
    frame: Frame,
    op: str,
    leaves: Sequence[Leaf],
    compute: Any,
    *,
    absorbed: Sequence[str] = (),
    only_clamps: bool = False,
) -> IntegerOp:
    """An integer operator with this frame's output.

    `absorbed` names the QDQ layers that it computes besides its own, in order.
    """
    return IntegerOp(
        op=op,
        name=frame.name,
        layers=(*absorbed, frame.name),
        inputs=tuple(leaf.var for leaf in leaves),
        output=frame.output,
        shape=frame.shape,
        input_quantization=tuple(leaf.quantization for leaf in leaves),
        quantization=frame.quantization,
        input_layouts=tuple(leaf.layout for leaf in leaves),
        layout=frame.layout,
        compute=compute,
        only_clamps=only_clamps,
    )
