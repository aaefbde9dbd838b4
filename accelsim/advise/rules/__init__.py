"""Replacements of layers: each module of this folder registers its own by name.

What comes in: operators of a traced float network. What goes out: `Rule`s, and the sites that they
fit. It must not know costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import fx, nn

from accelsim.discovery import modules_in


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a network where a rule fits."""

    layer: str  # the user's name
    nodes: tuple[fx.Node, ...]  # in order; the last one's value is replaced
    module: nn.Module | None  # the layer's module, or the known function that the nodes compute

    @property
    def source(self) -> fx.Node:
        """The one tensor that the nodes read, as the graph is now."""
        (read,) = {one for node in self.nodes for one in node.all_input_nodes} - set(self.nodes)
        return read


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of replacement."""

    name: str
    what: str  # one line for people: what becomes what
    why: str  # what is gained, and what is lost
    exact: bool  # whether float outputs stay the same
    find: Callable[[fx.GraphModule, Mapping[fx.Node, str]], Sequence[Site]]
    make: Callable[[Site], nn.Module]


def all_rules() -> dict[str, Rule]:
    """Every rule by name."""
    return {rule.name: rule for module in modules_in(__name__) for rule in module.RULES}


def module_of(graph: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """The module that a node calls."""
    return graph.get_submodule(str(node.target)) if node.op == "call_module" else None
