"""What of a network the NPU cannot run, or runs badly.

What comes in: a traced float network, and what its int8 form costs. What goes out: findings, the
most expensive first. It must not know how replacements are made.
"""

from __future__ import annotations

from collections import defaultdict

from accelsim.advise.costs import Placed
from accelsim.advise.record import Finding
from accelsim.advise.replace import Traced
from accelsim.advise.rules import all_rules
from accelsim.spec.config import Config

LEAST_SHARE = 0.03  # of the network's cycles: what costs less is not worth a finding
LEAST_PASS = 0.005  # of a pass that is not needed: there are many of a kind
POOR_UTILIZATION = 0.35  # of the multipliers, in a layer of products


def findings(network: Traced, placed: Placed, config: Config) -> list[Finding]:
    """Layers on the host, tables with a pass of their own, and multipliers that idle."""
    fitting = _fitting(network)
    found = [
        Finding(layer, "host", f"runs on the host: {reason}", 0.0, _rules(fitting, placed, layer))
        for layer, reason in placed.host.items()
    ]
    total = max(1, placed.costs.cycles)
    peak = config.lanes * config.lanes
    rows = []
    for layer, cycles in placed.costs.layer_cycles.items():
        share, operator = cycles / total, placed.operators[layer]
        rules = _rules(fitting, placed, layer)
        macs = placed.macs[layer]
        used = macs / (peak * max(1, cycles))
        problem = ""
        if not macs and rules:
            problem = "is a pass over the tensor of its own"
        elif macs and used < POOR_UTILIZATION:
            problem = f"uses {used:.0%} of the multipliers"
        elif macs and rules:
            problem = f"has {macs:,} products"
        if problem and share >= (LEAST_SHARE if macs else LEAST_PASS):
            rows.append(Finding(layer, operator, problem, share, rules))
    return found + sorted(rows, key=lambda one: -one.share)


def _fitting(network: Traced) -> dict[str, list[str]]:
    """The user's operator → names of the rules that fit it."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, rule in all_rules().items():
        for site in network.sites(rule):
            for node in site.nodes:
                found[network.names.get(node, site.layer)].append(name)
    return found


def _rules(fitting: dict[str, list[str]], placed: Placed, layer: str) -> tuple[str, ...]:
    members = dict.fromkeys((layer, *placed.members.get(layer, ())))
    return tuple(dict.fromkeys(rule for one in members for rule in fitting.get(one, ())))
