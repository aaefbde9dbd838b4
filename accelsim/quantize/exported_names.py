"""The user's names of layers in an already quantized exported program.

What comes in: an `ExportedProgram`. What goes out: `LayerNames` from the module paths that
torch.export keeps in its metadata and parameter names, or, where accelsim quantized the program,
the names that `keep_names` put into it: they survive `torch.export.save`. It must not know Relax.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from accelsim.quantize.names import (
    LayerName,
    LayerNames,
    UniqueNames,
    group_names,
    is_activation_quantize,
    is_dequantize,
    is_quantize,
    operator_name,
)

_KEY = "accelsim.layer"


def exported_names(program: torch.export.ExportedProgram) -> LayerNames:
    """Names for an already quantized program, kept by accelsim or from its module paths."""
    kept = _kept_names(program)
    if kept is not None:
        return kept
    signature = program.graph_signature
    user_inputs = set(signature.user_inputs)
    parameters = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    unique = UniqueNames(str(name) for name in user_inputs)
    names: dict[fx.Node, str] = {}
    first: dict[str, str] = {}  # module path → the operator that has its plain name

    def is_constant(node: fx.Node) -> bool:
        return node.op == "get_attr" or (node.op == "placeholder" and node.name not in user_inputs)

    for node in program.graph.nodes:
        if node.op == "call_function" and not is_quantize(node) and not is_dequantize(node):
            plain, own = _exported_name(node, parameters), operator_name(node.target)
            fused = first.setdefault(plain, own) != own  # a ReLU inside a fused convolution
            names[node] = unique.take(f"{plain}/{own}" if fused else plain)
    return group_names(
        program.graph,
        program.graph_module,
        is_constant,
        lambda node: names[node],
        lambda node: (names[node],),
    )


def keep_names(program: torch.export.ExportedProgram, names: LayerNames) -> None:
    """Write a program's layer names into its metadata, for `exported_names` of its reader."""
    ends = _ends(program)
    layers = [*names.quantized, *([names.tail] if names.tail is not None else [])]
    for node, layer in zip(ends, layers, strict=False):
        node.meta["custom"] = {_KEY: [layer.name, *layer.members]}


def _kept_names(program: torch.export.ExportedProgram) -> LayerNames | None:
    """What `keep_names` wrote; None unless every layer has its own."""
    *ends, last = _ends(program)
    found = [_kept(node) for node in ends]
    tail = _kept(last)
    layers = [layer for layer in found if layer is not None]
    taken = {layer.name for layer in layers} | ({tail.name} if tail is not None else set())
    if not layers or len(taken) != len(found) + (tail is not None):
        return None
    return LayerNames(tuple(layers), tail)


def _kept(node: fx.Node) -> LayerName | None:
    stored: Any = node.meta.get("custom")
    texts = stored.get(_KEY) if isinstance(stored, dict) else None
    if not isinstance(texts, list) or not texts or not all(isinstance(x, str) for x in texts):
        return None
    return LayerName(texts[0], tuple(texts[1:]), "")


def _ends(program: torch.export.ExportedProgram) -> list[fx.Node]:
    """The node that ends each layer: every quantize of an activation, then what is returned."""
    user_inputs = set(program.graph_signature.user_inputs)

    def is_constant(node: fx.Node) -> bool:
        return node.op == "get_attr" or (node.op == "placeholder" and node.name not in user_inputs)

    nodes = list(program.graph.nodes)
    ends = [node for node in nodes if is_activation_quantize(node, is_constant)]
    returned = nodes[-1].all_input_nodes
    return [*ends, returned[-1] if returned else nodes[-1]]


def _exported_name(node: fx.Node, parameters: Mapping[str, str]) -> str:
    """Module path of a leaf module or of the weight, else "scope/operator"."""
    own = operator_name(node.target)
    scope = ""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if stack:
        path, kind = str(stack[-1][0]), str(stack[-1][1])
        if path and "torch.nn.modules." in kind and "container" not in kind:
            return path
        scope = path if ".<locals>." not in kind else ""
    if own in ("conv1d", "conv2d", "conv3d", "convolution", "linear", "addmm"):
        weight = node.args[1]
        while isinstance(weight, fx.Node) and weight.all_input_nodes:
            weight = weight.all_input_nodes[0]
        target = parameters.get(getattr(weight, "name", ""), "")
        if "." in target:
            return target.rpartition(".")[0]
    return f"{scope}/{own}" if scope else own
