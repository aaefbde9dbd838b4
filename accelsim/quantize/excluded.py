"""Layers that were left out of quantization: their weights are float32.

What comes in: a QDQ module, its layers' members, and the names by which layers were excluded. What
goes out: layer name → who excluded it. It must not know torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relax
from tvm.ir.expr import GenericConst

from accelsim.quantize.canonical import op_name
from accelsim.quantize.kept_float import is_part
from accelsim.quantize.spans import span_name

_WEIGHTED = frozenset(
    {"relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv1d_transpose"}
    | {"relax.nn.conv2d_transpose", "relax.matmul"}
)
_UNNAMED = "excluded by its quantization configuration, which leaves its weights in float32"


def excluded_layers(
    module: Any, members: Mapping[str, Sequence[str]], chosen: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Layer name → the reason why it stays on the host.

    Args:
        module: whose `main` is to be looked at.
        members: layer name → its operators.
        chosen: the exclusion as the user wrote it → the names of its operators.
    """
    found: dict[str, str] = {}
    bindings = {
        binding.var: binding.value
        for block in module["main"].body.blocks
        for binding in block.bindings
    }
    for value in bindings.values():
        if op_name(value) not in _WEIGHTED or not _is_float(value.args[1], bindings):
            continue
        layer = span_name(value)
        if layer is None:
            continue
        named = [
            name
            for name, operators in chosen.items()
            if any(is_part(member, one) for member in members.get(layer, ()) for one in operators)
        ]
        found[layer] = f"excluded by '{named[0]}'" if named else _UNNAMED
    return found


def _is_float(weight: Any, bindings: Mapping[Any, Any]) -> bool:
    """Whether a weight is a float32 constant, transposed or not."""
    value = bindings.get(weight, weight) if not isinstance(weight, GenericConst) else weight
    if op_name(value) == "relax.permute_dims":
        return _is_float(value.args[0], bindings)
    if isinstance(value, relax.Var) and value in bindings:
        return _is_float(value, bindings)
    return isinstance(value, GenericConst)
