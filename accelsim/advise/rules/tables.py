"""Activations written out as arithmetic, joined into the one function that the NPU has as a table.

What comes in: additions, products and functions that depend on one tensor only. What goes out: the
module that computes the same. Which one it is is found by evaluating both in double precision.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import fx, nn

from accelsim.advise.rules import Rule, Site, module_of

_KNOWN: tuple[nn.Module, ...] = (
    nn.GELU(),
    nn.GELU(approximate="tanh"),
    nn.SiLU(),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.Mish(),
)
_POINTWISE = frozenset(
    {operator.add, operator.mul, operator.sub, operator.truediv, operator.pow, operator.neg}
    | {torch.add, torch.mul, torch.sub, torch.div, torch.pow, torch.tanh, torch.sigmoid, torch.erf}
    | {torch.exp, torch.clamp, nn.functional.relu6, nn.functional.softplus, nn.functional.hardtanh}
)
_METHODS = frozenset({"add", "mul", "sub", "div", "pow", "tanh", "sigmoid", "erf", "clamp"})
_MODULES = (nn.Tanh, nn.Sigmoid, nn.ReLU6, nn.Softplus, nn.Hardtanh)
_LARGEST = 16  # operators of one activation
_CLOSE = 1e-6
_POINTS = torch.linspace(-9, 9, 4001, dtype=torch.float64)


def find(graph: fx.GraphModule, names: Mapping[fx.Node, str]) -> list[Site]:
    """Regions that start from one tensor and equal a known function; the largest one each."""
    sites: list[Site] = []
    taken: set[fx.Node] = set()
    for end in reversed(list(graph.graph.nodes)):
        if end in taken or not _is_pointwise(graph, end):
            continue
        for source, nodes in _regions(graph, end):
            known = _match(graph, source, nodes) if len(nodes) > 1 else None
            if known is not None:
                sites.append(Site(names.get(end, end.name), nodes, known))
                taken.update(nodes)
                break
    return sites[::-1]


def _is_pointwise(graph: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_function":
        return node.target in _POINTWISE
    if node.op == "call_method":
        return node.target in _METHODS
    return isinstance(module_of(graph, node), _MODULES)


def _regions(graph: fx.GraphModule, end: fx.Node) -> Iterator[tuple[fx.Node, tuple[fx.Node, ...]]]:
    """(source, nodes) of growing regions that end here and read one tensor; largest last."""
    order = {node: place for place, node in enumerate(graph.graph.nodes)}
    inside = {end}
    found = []
    while len(inside) <= _LARGEST:
        read = {one for node in inside for one in node.all_input_nodes} - inside
        if len(read) == 1:
            found.append((next(iter(read)), tuple(sorted(inside, key=order.__getitem__))))
        latest = max(read, key=order.__getitem__, default=None)
        if latest is None or not _is_pointwise(graph, latest):
            break
        if any(user not in inside for user in latest.users):
            break
        inside.add(latest)
    yield from reversed(found)


def _match(graph: fx.GraphModule, source: fx.Node, nodes: tuple[fx.Node, ...]) -> nn.Module | None:
    """The known function that a region computes."""
    try:
        values = _evaluate(graph, source, nodes)
    except Exception:  # an operator that does not run on these numbers is no activation
        return None
    for module in _KNOWN:
        wanted = module(_POINTS)
        if values.shape == wanted.shape and bool(((values - wanted).abs() < _CLOSE).all()):
            return module
    return None


def _evaluate(graph: fx.GraphModule, source: fx.Node, nodes: tuple[fx.Node, ...]) -> torch.Tensor:
    values: dict[fx.Node, Any] = {source: _POINTS}
    for node in nodes:
        arguments = fx.map_arg(node.args, values.__getitem__)
        named = fx.map_arg(node.kwargs, values.__getitem__)
        if node.op == "call_module":
            values[node] = graph.get_submodule(str(node.target))(*arguments, **named)
        elif node.op == "call_method":
            values[node] = getattr(arguments[0], str(node.target))(*arguments[1:], **named)
        else:
            values[node] = node.target(*arguments, **named)  # type: ignore[operator]
    result: torch.Tensor = values[nodes[-1]]
    return result


def _make(site: Site) -> nn.Module:
    assert site.module is not None
    return copy.deepcopy(site.module)


RULES = (
    Rule(
        "activation-table",
        "an activation written out as arithmetic → one function",
        "one table of 256 entries, exact for every input, in place of several roundings",
        True,
        find,
        _make,
    ),
)
