"""A clip folded into the operator before it.

What comes in: an operator that only clamps. What goes out: its producer, with narrower limits. It
must not know operators: limits are the fields `clamp_min` and `clamp_max` of a dataclass, or of
the `Requantize`s with which it ends.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from accelsim.artifacts import Requantize
from accelsim.legalize.graph import Graph
from accelsim.legalize.integer_op import IntegerOp


def absorb_clamp(graph: Graph, op: IntegerOp, operators: dict[Any, IntegerOp]) -> IntegerOp:
    """Fold a clip at unchanged scale into the operator before it, if nothing else reads that.

    The operator before it leaves `operators`.
    """
    source = operators.get(op.inputs[0]) if op.only_clamps else None
    if source is None or graph.sole_user(source.output) is None:
        return op
    if not source.quantization.same_levels(op.quantization):
        return op
    shift = op.quantization.shift
    low, high = (limit - shift for limit in op.quantization.limits)
    compute = narrowed(source.compute, low, high)
    if compute is None:
        return op
    del operators[source.output]
    return replace(
        source,
        name=op.name,
        layers=source.layers + op.layers,
        output=op.output,
        quantization=op.quantization,
        compute=compute,
    )


def narrowed(compute: Any, low: int, high: int) -> Any | None:
    """`compute` with its result clamped once more, or None where it has no limits."""
    names = {field.name for field in fields(compute)} if compute is not None else set()
    if "requantize" in names and compute.requantize is not None:
        ends = {
            name: _narrowed_end(getattr(compute, name), low, high)
            for name in names
            if _has_end(getattr(compute, name))
        }
        return replace(compute, **ends)
    if {"clamp_min", "clamp_max"} <= names:
        limits = _one_clamp(compute.clamp_min, compute.clamp_max, low, high)
        return replace(compute, clamp_min=limits[0], clamp_max=limits[1])
    return None


def _has_end(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_end(part) for part in value)
    return isinstance(value, Requantize)


def _narrowed_end(value: Any, low: int, high: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_narrowed_end(part, low, high) for part in value)
    if isinstance(value, Requantize):
        limits = _one_clamp(value.clamp_min, value.clamp_max, low, high)
        return replace(value, clamp_min=limits[0], clamp_max=limits[1])
    return value


def _one_clamp(inner_low: int, inner_high: int, low: int, high: int) -> tuple[int, int]:
    """clamp(clamp(x, inner), outer) as one clamp; the outer one wins where they are disjoint."""
    return min(max(inner_low, low), high), min(max(inner_high, low), high)
