"""Why an island stays on the host that no operator claims: what in it is in the way.

What comes in: a graph and the last float operator of an island. What goes out: a sentence's end, as
`Rejection` has it. It must not know operators, only which Relax operators one may start at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir

from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.operators import operators_at

_PLAIN = ("tuple", "tuple_element", "alias", "constant")
_RENAMING = ("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims")
_MOST = 4  # operators that a sentence lists
_ALONE = "the NPU runs one operator at a time"


def reason_of_inputs(graph: Graph, node: Node) -> str | None:
    """The reason of an island that starts from inputs of the model without levels alone."""
    found = _island(graph, node)
    if found.activations or not found.parameters:
        return None
    names = " and ".join(f"'{name}'" for name in found.parameters)
    many = len(found.parameters) > 1
    return (
        f"it computes from the model's input{'s' if many else ''} {names}, which "
        f"{'are' if many else 'is'} not quantized"
    )


def reason_of_operators(graph: Graph, node: Node) -> str:
    """The operator that has no integer form; else those that no quantize stands between."""
    operators = [one for one in _island(graph, node).operators if one not in _RENAMING]
    for name in operators:
        if not operators_at(name):
            return f"{short(name)} has no integer form on the NPU"
    names = list(dict.fromkeys(short(name) for name in operators))
    if len(operators) < 2:
        one = names[0] if names else short(node.op)
        return f"{one} is given something that is not a quantized activation"
    if len(names) == 1:
        return f"no quantize stands between its {len(operators)} operators {names[0]}; {_ALONE}"
    if len(names) > _MOST:
        names = [*names[: _MOST - 2], "…", names[-1]]
    listed = ", ".join(names[:-1]) + f" and {names[-1]}"
    return f"no quantize stands between its {listed}; {_ALONE}"


def short(operator: str) -> str:
    """A Relax operator as users read it."""
    return operator.removeprefix("relax.").removeprefix("nn.")


@dataclass(frozen=True, slots=True)
class _Found:
    """What leads to an operator from dequantized activations and inputs of the model."""

    operators: tuple[str, ...]  # in order of execution, those on constants alone left out
    parameters: tuple[str, ...]
    activations: int


def _island(graph: Graph, last: Node) -> _Found:
    inside: dict[int, Node] = {}
    waiting = [last]
    while waiting:
        node = waiting.pop()
        if node.index in inside:
            continue
        inside[node.index] = node
        if node.op != "relax.dequantize":
            producers = [graph.producer(one) for one in _operands(node)]
            waiting += [one for one in producers if one is not None]
    inputs = {parameter: str(parameter.name) for parameter in graph.parameters}
    flows: set[Any] = set()  # variables that depend on more than constants
    operators, parameters, activations = [], dict[str, None](), 0
    for _, node in sorted(inside.items()):
        if node.op == "relax.dequantize":
            if graph.constant(node.args[0]) is None:
                activations += 1
                flows.add(node.var)
            continue
        reached = False
        for one in _operands(node):
            producer = graph.producer(one)
            if producer is None and one in inputs:
                parameters[inputs[one]] = None
                reached = True
            elif producer is not None and producer.var in flows:
                reached = True
        if reached:
            flows.add(node.var)
            if node.op not in _PLAIN:
                operators.append(node.op)
    return _Found(tuple(operators), tuple(parameters), activations)


def _operands(node: Node) -> list[Any]:
    """Variables that a node reads, tuples looked into."""
    found: list[Any] = []
    waiting = list(node.args)
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, ir.Var):
            found.append(one)
        else:
            waiting = [*getattr(one, "fields", ()), *waiting]
    return found
