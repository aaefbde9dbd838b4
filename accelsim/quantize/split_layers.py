"""One layer for each operator that only moves or chooses elements of an exported program.

What comes in: an `ExportedProgram` whose quantizer put no quantize around a reshape or a maximum
pool, as PT2E's do. What goes out: a program that computes the same integers, with them around it.
It must not know Relax.

Moving elements and choosing the largest commute with quantization, so nothing changes: behind a
dequantize such an operator gives levels that a quantize with the same scale finds again, and before
a quantize it may as well come after it.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from torch import fx

from accelsim.quantize.names import is_dequantize, is_quantize, operator_name

_OPS: Any = torch.ops.quantized_decomposed
_MOVES = frozenset(
    {
        "view",
        "reshape",
        "_unsafe_view",
        "flatten",
        "unflatten",
        "squeeze",
        "unsqueeze",
        "permute",
        "transpose",
    }
    | {"max_pool1d", "max_pool2d", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"}
)
_NOTHING = frozenset({"dropout", "alias", "detach", "contiguous", "clone"})


def split_layers(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program itself, or a copy of it with more quantize and dequantize nodes."""
    constants = {node for node in program.graph.nodes if node.op in ("placeholder", "get_attr")}
    constants -= {n for n in constants if n.name in program.graph_signature.user_inputs}
    names = {node.name for node in constants}
    with warnings.catch_warnings():  # torch's own, of how it copies
        warnings.simplefilter("ignore")
        module = copy.deepcopy(program.graph_module)
        signature = copy.deepcopy(program.graph_signature)
    changed = False
    for node in list(module.graph.nodes):
        changed |= node.op == "call_function" and _bypass(node)
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    for node in nodes:
        changed |= _after(node, names)
    for node in reversed(nodes):
        changed |= _before(node)
    if not changed:
        return program
    module.graph.lint()
    module.recompile()
    updated: torch.export.ExportedProgram = program._update(module, signature)
    return updated


def _bypass(node: fx.Node) -> bool:
    """Remove an operator that does nothing in eval mode."""
    kind, source = operator_name(node.target), node.args[0] if node.args else None
    if kind not in _NOTHING or not isinstance(source, fx.Node):
        return False
    if kind == "dropout" and node.args[2:3] != (False,):
        return False
    node.replace_all_uses_with(source)
    node.graph.erase_node(node)
    if not is_dequantize(source):
        return True
    integers = source.all_input_nodes[0]
    for user in list(source.users):
        if is_quantize(user) and user.args[1:] == source.args[1:]:
            user.replace_all_uses_with(integers)
            node.graph.erase_node(user)
    return True


def _after(node: fx.Node, constants: set[str]) -> bool:
    """Quantize what is moved behind a dequantize, unless that is done."""
    source = node.args[0] if node.args else None
    if operator_name(node.target) not in _MOVES or not isinstance(source, fx.Node):
        return False
    if not is_dequantize(source) or not _per_tensor(source):
        return False
    if source.all_input_nodes[0].name in constants:
        return False
    users = list(node.users)
    if not users or all(is_quantize(user) for user in users):
        return False
    overload = str(getattr(source.target, "_overloadname", "default"))
    made = _pair(node, source.args[1:6], overload)
    for user in users:
        if user.op != "output":
            user.replace_input_with(node, made)
    return True


def _before(node: fx.Node) -> bool:
    """Quantize what is moved before a quantize, unless that is done."""
    source = node.args[0] if node.args else None
    if operator_name(node.target) not in _MOVES or not isinstance(source, fx.Node):
        return False
    users = list(node.users)
    if is_dequantize(source) or source.op != "call_function" or len(users) != 1:
        return False
    if not is_quantize(users[0]) or not _per_tensor(users[0]):
        return False
    parameters = users[0].args[1:6]
    first = {one for one in parameters if isinstance(one, fx.Node)}
    if any(one.op not in ("placeholder", "get_attr") for one in first):
        return False
    overload = str(getattr(users[0].target, "_overloadname", "default"))
    made = _pair(source, parameters, overload)
    node.replace_input_with(source, made)
    return True


def _per_tensor(node: fx.Node) -> bool:
    return "per_tensor" in str(node.target) and len(node.args) == 6 and not node.kwargs


def _pair(node: fx.Node, parameters: tuple[Any, ...], overload: str) -> fx.Node:
    """A quantize and a dequantize of a node's result, behind it."""
    graph = node.graph
    with graph.inserting_after(node):
        quantize = getattr(_OPS.quantize_per_tensor, overload)
        integers = graph.call_function(quantize, (node, *parameters))
    with graph.inserting_after(integers):
        dequantize = getattr(_OPS.dequantize_per_tensor, overload)
        made = graph.call_function(dequantize, (integers, *parameters))
    value = node.meta["val"]
    for one, result in ((integers, value.to(parameters[4])), (made, value)):
        one.meta["val"] = result
        if "nn_module_stack" in node.meta:
            one.meta["nn_module_stack"] = node.meta["nn_module_stack"]
    return made
