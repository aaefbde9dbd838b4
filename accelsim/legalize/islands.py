"""Float islands between dequantize and quantize, read as integer operators.

What comes in: a `Graph`. What goes out: for each quantized variable an `IntegerOp`, or a
`Rejection` that says why its island stays on the host. It must not know how a module is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from accelsim.artifacts import Add, LayerOp, Pool2d
from accelsim.errors import ModelError
from accelsim.legalize import arithmetic, convolution, pooling
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.operators import IntegerOp, Rejection
from accelsim.legalize.qnnpack import clamp_limits

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
    rejections: dict[Any, Rejection] = {}
    for node in graph.nodes:
        if node.op != _QUANTIZE or graph.constant(node.args[0]) is not None:
            continue
        output = _output_node(graph, node)
        found = (
            Rejection(refused[output.name])
            if output.name in refused
            else _read_island(graph, node, output, operators, rounding)
        )
        if isinstance(found, Rejection):
            rejections[output.var] = found
            continue
        absorbed = _absorb_clamp(graph, found, operators)
        operators[output.var] = absorbed
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
    rounding: str,
) -> IntegerOp | Rejection:
    quantization = arithmetic.quantization_of(graph, quantize, output)
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
        quantization.scale, quantization.zero_point, quantization.limits, low, high
    )
    frame = arithmetic.Frame(
        graph=graph,
        name=output.name,
        output=output.var,
        shape=output.shape,
        quantization=replace(quantization, limits=limits),
        clipped=not (math.isinf(low) and math.isinf(high)),
        operators=operators,
        rounding=rounding,
    )
    for read in (
        convolution.read_convolution,
        arithmetic.read_add,
        pooling.read_pool,
        arithmetic.read_reshape,
        arithmetic.read_requantize,
    ):
        found = read(frame, node)
        if found is not None:
            return found
    return Rejection(f"{node.op.removeprefix('relax.')} has no integer form on the NPU")


def _clip_bounds(node: Node) -> tuple[float, float]:
    low, high = (getattr(argument, "value", argument) for argument in node.args[1:3])
    try:
        return float(low), float(high)
    except TypeError as error:
        raise ModelError(f"Layer {node.name!r} clips to limits that are not constants.") from error


def _absorb_clamp(graph: Graph, op: IntegerOp, operators: dict[Any, IntegerOp]) -> IntegerOp:
    """Fold a clip at unchanged scale into the operator before it, if nothing else reads that."""
    if op.op != "clip":
        return op
    source = operators.get(op.inputs[0])
    if source is None or source.compute is None or graph.sole_user(source.output) is None:
        return op
    if not source.quantization.same_levels(op.quantization):
        return op
    shift = op.quantization.shift
    low, high = (limit - shift for limit in op.quantization.limits)
    del operators[source.output]
    return replace(
        source,
        name=op.name,
        layers=source.layers + op.layers,
        output=op.output,
        quantization=op.quantization,
        compute=_narrowed(source.compute, low, high),
    )


def _narrowed(compute: LayerOp, low: int, high: int) -> LayerOp:
    """`compute` with its result clamped once more."""
    if isinstance(compute, Add):
        limits = _one_clamp(compute.clamp_min, compute.clamp_max, low, high)
        return replace(compute, clamp_min=limits[0], clamp_max=limits[1])
    if isinstance(compute, Pool2d) and compute.requantize is None:
        limits = _one_clamp(compute.clamp_min, compute.clamp_max, low, high)
        return replace(compute, clamp_min=limits[0], clamp_max=limits[1])
    requantize = compute.requantize
    if requantize is None:
        raise TypeError(f"{type(compute).__name__} has no limits to narrow")
    limits = _one_clamp(requantize.clamp_min, requantize.clamp_max, low, high)
    narrowed = replace(requantize, clamp_min=limits[0], clamp_max=limits[1])
    return replace(compute, requantize=narrowed)


def _one_clamp(inner_low: int, inner_high: int, low: int, high: int) -> tuple[int, int]:
    """clamp(clamp(x, inner), outer) as one clamp; the outer one wins where they are disjoint."""
    return min(max(inner_low, low), high), min(max(inner_high, low), high)
