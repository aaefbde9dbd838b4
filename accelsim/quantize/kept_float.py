"""Layers that FX quantization is told to leave in float, by the user's names.

What comes in: a float module that is ready for FX quantization, and names. What goes out: entries
in the mapping that PyTorch reads. It must not know observers or why a layer stays.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx, nn

from accelsim.errors import InputError


def keep_float(
    mapping: Any,
    module: nn.Module,
    user_names: Mapping[str, str],
    names: Sequence[str],
    model: str,
) -> None:
    """Take operators out of a `QConfigMapping`.

    Args:
        mapping: changed in place.
        module: as `float_graph` returns it.
        user_names: fx name of each operator → the user's.
        names: of operators, of modules ("block2" is all of block2), or of types: "Linear" is every
            linear layer, "add" every addition.

    Raises InputError for a name that no operator has, or one whose operators have no weights.
    """
    chosen = {fx_name for name in names for fx_name in _named(name, module, user_names, model)}
    fused, scopes = _fused(module)
    seen: Counter[tuple[str, Any]] = Counter()
    weighty = False
    for node in fused.graph.nodes:
        scope = scopes.get(node.name, ("", None))[0]
        if node.op == "call_function":
            key = (scope, node.target)
            if node.name in chosen:
                mapping.set_module_name_object_type_order(*key, seen[key], None)
                weighty = weighty or any(one.op == "get_attr" for one in node.all_input_nodes)
            seen[key] += 1
        elif node.op == "call_module" and node.name in chosen:
            mapping.set_module_name(str(node.target), None)
            layer = fused.get_submodule(str(node.target))
            weighty = weighty or next(layer.parameters(), None) is not None
    if not weighty:
        raise InputError(
            f"{', '.join(names)} of {model} cannot be kept in float: without weights, such a layer "
            "computes the same between int8 tensors; keep a layer with weights"
        )


def is_part(operator: str, name: str) -> bool:
    """Whether an operator's user name is `name`, or lies in the module of that name."""
    return operator == name or operator.startswith((f"{name}.", f"{name}/"))


def operators_of(name: str, module: nn.Module, user_names: Mapping[str, str]) -> dict[str, str]:
    """fx name → user's name of all operators that a name of an operator, module or type means."""
    parts = {fx_name: own for fx_name, own in user_names.items() if is_part(own, name)}
    if parts:
        return parts
    kind = name.removeprefix("torch.").removeprefix("nn.")
    modules = {path: type(one).__name__ for path, one in module.named_modules()}
    return {
        fx_name: own
        for fx_name, own in user_names.items()
        if kind == modules.get(own, re.sub(r"_\d+$", "", own.rpartition("/")[2]))
    }


def _named(name: str, module: nn.Module, user_names: Mapping[str, str], model: str) -> list[str]:
    found = list(operators_of(name, module, user_names))
    if not found:
        known = list(user_names.values())
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known[:12])}"
        raise InputError(f"model {model} has no layer '{name}' to keep in float; {hint}")
    return found


def _fused(module: nn.Module) -> tuple[fx.GraphModule, Mapping[str, tuple[str, Any]]]:
    """What PyTorch will quantize, batch norm and activations fused, and its operators' scopes."""
    from torch.ao.quantization.fx.tracer import QuantizationTracer
    from torch.ao.quantization.quantize_fx import fuse_fx

    tracer = QuantizationTracer([], [])
    tracer.trace(module)
    fused: fx.GraphModule = fuse_fx(copy.deepcopy(module))
    return fused, tracer.node_name_to_scope
