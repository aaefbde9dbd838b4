"""QDQ Relax module → integer Relax module.

What comes in: a `QuantizedModel`. What goes out: a `Legalized` module in which every float island
that the NPU can compute is one call of a named PrimFunc (see `legalize.form`), and why the others
are not. It must not know how operators are grouped, scheduled or encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelsim.artifacts import QuantizedModel
from accelsim.errors import ModelError
from accelsim.legalize.graph import Graph, Node, read_graph
from accelsim.legalize.islands import Islands, find_islands
from accelsim.legalize.operators import Operator, register
from accelsim.legalize.passes import register_pass, run_passes
from accelsim.legalize.reasons import short
from accelsim.legalize.rewrite import write_module
from accelsim.quantize.spans import layer_reasons

__all__ = [
    "HostOp",
    "Legalized",
    "Operator",
    "legalize",
    "legalize_module",
    "register",
    "register_pass",
]

_STRUCTURE = ("tuple", "tuple_element", "alias", "constant")
_RENAMING = ("reshape", "flatten", "squeeze", "expand_dims")
_PREPARATIONS = ("relax.dequantize", "relax.reshape", "relax.permute_dims")


@dataclass(frozen=True, slots=True)
class HostOp:
    """A layer that runs on the host, its first operator, and why.

    `boundary` marks what computes nothing that could be compared: conversions at the edge of the
    network or of a host operator (quantize of a float input, dequantize of a result), reshapes.
    """

    name: str  # the user's layer name
    op: str  # "sigmoid", "conv2d", "quantize", …
    reason: str
    boundary: bool = False


@dataclass(frozen=True, slots=True)
class Legalized:
    """A module with integer operators, the layers in each of them, and what is left to the host.

    `layers` maps the name on an operator's span to the names of all QDQ layers that it computes.
    """

    module: Any
    layers: dict[str, tuple[str, ...]]
    host_ops: tuple[HostOp, ...]


def legalize(model: QuantizedModel, refused: Mapping[str, str] | None = None) -> Legalized:
    """Legalize a quantized model.

    `refused` maps layers that must stay on the host to the reason why; those that were left out of
    quantization do in any case. Raises ModelError for dynamic shapes and unknown dtypes.
    """
    return legalize_module(
        model.qdq, {**(refused or {}), **model.excluded}, rounding=model.rounding
    )


def legalize_module(
    module: Any, refused: Mapping[str, str] | None = None, *, rounding: str = "fp32"
) -> Legalized:
    """Legalize a QDQ module whose function is `main`; `rounding` as in `QuantizedModel`.

    Passes that a team registered run first.
    """
    module = run_passes(module)
    graph = read_graph(module["main"])
    islands = find_islands(graph, refused or {}, rounding)
    written, remaining = write_module(module, graph, islands, rounding)
    layers = {op.name: op.layers for op in islands.operators.values()}
    if len(layers) != len(islands.operators):
        names = [op.name for op in islands.operators.values()]
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"Two layers are named {twice!r}; layer names must be unique.")
    reasons = layer_reasons(module) | dict(refused or {})
    return Legalized(written, layers, _host_ops(graph, islands, remaining, reasons))


def _host_ops(
    graph: Graph, islands: Islands, remaining: list[Node], refused: Mapping[str, str]
) -> tuple[HostOp, ...]:
    reasons, unquantized = dict(refused), dict[str, str]()
    for var, rejection in islands.rejections.items():
        reasons[graph.by_var[var].name] = rejection.reason
    for node in remaining:
        if node.dtype == "float32" and node.op not in _STRUCTURE and node.name not in reasons:
            unquantized[node.name] = f"the result of its {short(node.op)} is used in float32"
    reasons = unquantized | reasons
    found: dict[str, HostOp] = {}
    for node in remaining:
        if node.op in _STRUCTURE or _prepares_constant(graph, node):
            continue
        op = _host_op(node, reasons)
        known = found.get(op.name)
        if known is None or (known.boundary and not op.boundary):
            found[op.name] = op
    return tuple(found.values())


def _host_op(node: Node, reasons: Mapping[str, str]) -> HostOp:
    op = node.op.removeprefix("relax.").removeprefix("nn.")
    if op in ("quantize", "dequantize") or (op == "clip" and node.dtype != "float32"):
        reason = "conversion between float32 and integers at the edge of the host"
        return HostOp(node.name, op, reason, boundary=True)
    if op in _RENAMING:
        reason = reasons.get(node.name, "it only renames elements of a float32 result")
        return HostOp(node.name, op, reason, boundary=True)
    return HostOp(node.name, op, reasons.get(node.name, "its result is used in float32"))


def _prepares_constant(graph: Graph, node: Node) -> bool:
    """Whether a node only rearranges constants: a weight's dequantize, a bias's reshape."""
    current: Node | None = node
    while current is not None and current.op in _PREPARATIONS:
        if graph.constant(current.args[0]) is not None:
            return True
        current = graph.producer(current.args[0])
    return False
