"""Replacements put into a copy of a network.

What comes in: a float module and what to apply. What goes out: a changed `fx.GraphModule`. It must
not know costs.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from torch import fx, nn

from accelsim.advise.rules import Rule, Site, all_rules
from accelsim.errors import InputError
from accelsim.quantize.float_graph import float_graph


@dataclass(frozen=True, slots=True)
class Traced:
    """A copy of a float network as a graph, and the user's name of each operator."""

    graph: fx.GraphModule
    names: dict[fx.Node, str]

    def sites(self, rule: Rule) -> Sequence[Site]:
        """Where a rule fits."""
        return rule.find(self.graph, self.names)


def traced(module: nn.Module, model: str) -> Traced:
    """Trace a copy. Raises ModelError where the forward cannot be traced."""
    repaired, graph, names = float_graph(copy.deepcopy(module).eval(), model)
    made = fx.GraphModule(repaired, graph).eval()
    pairs = zip(made.graph.nodes, graph.nodes, strict=True)
    known = {new: names[old.name] for new, old in pairs if old.name in names}
    for node, name in known.items():
        node.meta["user_name"] = name
    return Traced(made, known)


def known_rule(entry: str) -> Rule:
    """The rule of `RULE` or `RULE:LAYER`. Raises InputError for one that there is not."""
    name, _, _ = entry.partition(":")
    rules = all_rules()
    if name not in rules:
        raise InputError(f"there is no replacement '{name}'; there are {', '.join(rules)}")
    return rules[name]


def apply(network: Traced, wanted: Sequence[str]) -> list[str]:
    """Replace, in place, and name what was replaced: "layer: rule".

    Args:
        network: from `traced`.
        wanted: `RULE`, or `RULE:LAYER` for one layer.

    Raises InputError for a rule that there is not, or that fits no such layer.
    """
    done: list[str] = []
    for entry in wanted:
        name, _, layer = entry.partition(":")
        rule = known_rule(entry)
        sites = [site for site in network.sites(rule) if layer in ("", site.layer)]
        if not sites:
            where = f"layer '{layer}'" if layer else "any layer"
            fitting = [site.layer for site in network.sites(rule)]
            hint = f"; it fits {', '.join(fitting)}" if fitting else ""
            raise InputError(f"replacement '{name}' does not fit {where} of the model{hint}")
        for site in sites:
            _put(network, site, rule.make(site))
            done.append(f"{site.layer}: {name}")
    network.graph.graph.eliminate_dead_code()
    network.graph.recompile()
    network.graph.delete_all_unused_submodules()
    return done


def _put(network: Traced, site: Site, module: nn.Module) -> None:
    """One replacement; the new module has the layer's name."""
    path = site.layer.replace("/", "_")
    taken = dict(network.graph.named_modules())
    unique, count = path, 0
    while unique in taken:
        count += 1
        unique = f"{path}_new{count if count > 1 else ''}"
    network.graph.add_submodule(unique, module)
    last = site.nodes[-1]
    with network.graph.graph.inserting_after(last):
        node = network.graph.graph.call_module(unique, (site.source,))
    last.replace_all_uses_with(node)
    for old in reversed(site.nodes):
        if not old.users:
            network.graph.graph.erase_node(old)
