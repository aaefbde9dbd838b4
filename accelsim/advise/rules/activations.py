"""Activations that cost a pass of their own, replaced by such that a convolution ends with.

What comes in: SiLU, GELU and Mish as modules or functions. What goes out: ReLU6 and hard-swish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx, nn

from accelsim.advise.rules import Rule, Site, module_of

_FORMS: dict[str, tuple[type[nn.Module], Callable[..., Any], str]] = {
    "silu": (nn.SiLU, nn.functional.silu, "SiLU"),
    "gelu": (nn.GELU, nn.functional.gelu, "GELU"),
    "mish": (nn.Mish, nn.functional.mish, "Mish"),
}


def _finder(form: str) -> Callable[[fx.GraphModule, Mapping[fx.Node, str]], Sequence[Site]]:
    kind, function, _ = _FORMS[form]

    def find(graph: fx.GraphModule, names: Mapping[fx.Node, str]) -> list[Site]:
        sites = []
        for node in graph.graph.nodes:
            module = module_of(graph, node)
            called = isinstance(module, kind) or node.target is function
            if called and isinstance(node.args[0], fx.Node):
                sites.append(Site(names.get(node, node.name), (node,), module))
        return sites

    return find


def _rule(form: str, target: str, make: Callable[[], nn.Module], why: str) -> Rule:
    name = _FORMS[form][2]
    what = f"{name} → {target}"
    slug = target.lower().replace("-", "")
    return Rule(f"{form}-{slug}", what, why, False, _finder(form), lambda _: make())


_FREE = "ReLU6 ends the layer before at no cost; a short training makes up for the other shape"
_CLOSE = "closer to the original than ReLU6; still a table of 256 entries and a pass of its own"

RULES = (
    _rule("silu", "ReLU6", nn.ReLU6, _FREE),
    _rule("silu", "hard-swish", nn.Hardswish, _CLOSE),
    _rule("gelu", "ReLU6", nn.ReLU6, _FREE),
    _rule("mish", "ReLU6", nn.ReLU6, _FREE),
    _rule("mish", "hard-swish", nn.Hardswish, _CLOSE),
)
