"""The user's names of layers in an already quantized exported program.

What comes in: an `ExportedProgram`. What goes out: `LayerNames` from the module paths that
torch.export keeps in its metadata and parameter names. It must not know Relax."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import fx

from accelsim.quantize.names import (
    LayerNames,
    UniqueNames,
    group_names,
    is_dequantize,
    is_quantize,
    operator_name,
)


def exported_names(program: torch.export.ExportedProgram) -> LayerNames:
    """Names for an already quantized program, from module paths kept in its metadata."""
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
