"""Float islands between dequantize and quantize, read as integer operators.

What comes in: a `Graph`. What goes out: for each quantized variable an `IntegerOp`, or a
`Rejection` that says why its island stays on the host. It must not know how a module is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from accelsim.errors import ModelError
from accelsim.legalize.clamps import absorb_clamp
from accelsim.legalize.frame import Frame, quantization_of
from accelsim.legalize.graph import Graph, Node, static_shape
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import find_layouts
from accelsim.legalize.multipliers import clamp_limits
from accelsim.legalize.operators import operators_at
from accelsim.legalize.reasons import reason_of_inputs, reason_of_operators

_QUANTIZE = "relax.quantize"


@dataclass(frozen=True, slots=True)
class Islands:
    """Integer operators by output variable, and the reasons of the islands that have none."""

    operators: dict[Any, IntegerOp]
    rejections: dict[Any, Rejection]


def find_islands(graph: Graph, refused: Mapping[str, str], rounding: str) -> Islands:
    """Every quantize in `graph`, as an integer operator or a rejection.

    `refused` maps layer names to the reason why they are rejected whatever they are; `rounding`
    as in `QuantizedModel`.
    Raises ModelError, naming the layer, where a quantized dtype is neither int8 nor uint8.
    """
    operators: dict[Any, IntegerOp] = {}
    hidden: dict[Any, IntegerOp] = {}
    rejections: dict[Any, Rejection] = {}
    layouts = find_layouts(graph)
    for node in graph.nodes:
        if node.op != _QUANTIZE or graph.constant(node.args[0]) is not None:
            continue
        output = _output_node(graph, node)
        found = (
            Rejection(refused[output.name])
            if output.name in refused
            else _read_island(graph, node, output, operators, hidden, layouts, rounding)
        )
        if isinstance(found, Rejection):
            rejections[output.var] = found
            continue
        operators[output.var] = absorb_clamp(graph, found, operators)
    return Islands(operators, rejections)


def _output_node(graph: Graph, quantize: Node) -> Node:
    """The quantize itself, or the integer clip that narrows it."""
    user = graph.sole_user(quantize.var)
    return user if user is not None and user.op == "relax.clip" else quantize


def _read_island(
    graph: Graph,
    quantize: Node,
    output: Node,
    operators: dict[Any, IntegerOp],
    hidden: dict[Any, IntegerOp],
    layouts: Mapping[Any, str],
    rounding: str,
) -> IntegerOp | Rejection:
    quantization = quantization_of(graph, quantize, output)
    if quantization is None:
        return Rejection("its activations are not quantized per tensor with constant parameters")
    low, high = -math.inf, math.inf
    expr = quantize.args[0]
    node = graph.producer(expr)
    while node is not None and node.op in ("relax.nn.relu", "relax.clip"):
        bounds = (0.0, math.inf) if node.op == "relax.nn.relu" else _clip_bounds(node)
        # The clip nearest to the output wins where two ranges do not overlap.
        low, high = (min(max(bound, low), high) for bound in bounds)
        node = graph.producer(node.args[0])
    if node is None:
        return Rejection("it quantizes a float32 input of the model")
    limits = clamp_limits(
        rounding, quantization.scale, quantization.zero_point, quantization.limits, low, high
    )
    frame = Frame(
        graph=graph,
        name=output.name,
        output=output.var,
        shape=output.shape,
        layouts=layouts,
        quantization=replace(quantization, limits=limits),
        clipped=not (math.isinf(low) and math.isinf(high)),
        operators=operators,
        rounding=rounding,
        hidden=hidden,
    )
    return _read(frame, node)


def _read(frame: Frame, node: Node) -> IntegerOp | Rejection:
    """What the operators make of an island whose last float operator is `node`."""
    if 0 in frame.shape:
        return Rejection("its result has no elements")
    reason = reason_of_inputs(frame.graph, node)
    if reason is not None:
        return Rejection(reason)
    rejected: Rejection | None = None
    for operator in operators_at(node.op):
        found = operator.read(frame, node)
        if isinstance(found, IntegerOp):
            if any(0 in static_shape(var, frame.name) for var in found.inputs):
                return Rejection("one of its inputs has no elements")
            if found.layout and all(found.input_layouts):
                return found
            found = Rejection(f"it has a tensor of rank {_odd_rank(found)}, which the NPU lacks")
        rejected = rejected or found
    return rejected or Rejection(reason_of_operators(frame.graph, node))


def _odd_rank(op: IntegerOp) -> int:
    """The rank of a tensor of the operator that has no layout."""
    tensors = zip((*op.inputs, op.output), (*op.input_layouts, op.layout), strict=True)
    return next(len(var.ty.shape) for var, layout in tensors if not layout)


def _clip_bounds(node: Node) -> tuple[float, float]:
    low, high = (getattr(argument, "value", argument) for argument in node.args[1:3])
    try:
        return float(low), float(high)
    except TypeError as error:
        raise ModelError(f"Layer {node.name!r} clips to limits that are not constants.") from error
