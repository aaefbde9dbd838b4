"""Limits narrower than the dtype, in PyTorch's int8 network.

What comes in: a network quantized in two forms. What goes out: its int8 form with every level
clamped as its reference form clamps it. It must not know layers.

fbgemm's configuration calibrates activations for the levels 0 to 127 of uint8, and the exported
graph clamps to them; PyTorch's kernels know no such limits and give up to 255. What the exported
graph says is the arithmetic of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx


def limit_levels(value: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """The quantized tensor with its levels raised to `low` and lowered to `high`."""
    levels = value.int_repr().clamp(low, high)
    limited: torch.Tensor = torch._make_per_tensor_quantized_tensor(
        levels, value.q_scale(), value.q_zero_point()
    )
    return limited


def limit_nodes(module: fx.GraphModule, limits: Mapping[fx.Node, tuple[int, int]]) -> None:
    """Clamp the results of nodes; what knew a node by its metadata finds the clamp instead."""
    for node, (low, high) in limits.items():
        if (low, high) in ((0, 255), (-128, 127)):
            continue
        with module.graph.inserting_after(node):
            limited = module.graph.call_function(limit_levels, (node, low, high))
        node.replace_all_uses_with(limited)
        limited.args = (node, low, high)
        limited.meta, node.meta = dict(node.meta), {}
    module.recompile()


def reference_limits(node: fx.Node) -> tuple[int, int]:
    """The limits of a quantize node of the reference form."""
    low, high = node.args[3:5]
    whole: Any = (low, high)
    return int(whole[0]), int(whole[1])
