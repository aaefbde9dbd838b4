"""Minus infinity in masks in front of a softmax, as a number that a scale can hold.

What comes in: the graph of a float module. What goes out: the same graph, where constants that are
only added to what a softmax takes are finite. It must not know observers or dtypes.

A number that the softmax takes to nothing may be any low one: exp(-60) vanishes beside scores
within 40 of each other. What fills scores with minus infinity becomes a sum with a mask. Where the
mask goes anywhere else, it stays as it is.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx, nn

from accelsim.importer.floats.onnx_operators.pointwise import MASKED, MINUS_INFINITY
from accelsim.quantize.names import operator_name

_MOVES = frozenset(
    {"getitem", "unsqueeze", "squeeze", "view", "reshape", "expand", "expand_as", "to", "float"}
    | {"contiguous", "flatten", "permute", "transpose", "clone", "detach", "repeat", "slice"}
    | {"select", "lift_fresh", "lift_fresh_copy", "alias", "narrow", "type_as"}
)


def finite_masks(graph: fx.Graph, module: nn.Module, names: dict[str, str]) -> bool:
    """Put finite numbers in place of minus infinity in masks; whether there was one.

    `names`, the user's of operators, gets those of what computes a mask.
    """
    bound: set[fx.Node] = set()
    changed = False
    for node in reversed(graph.nodes):
        if _is_softmax(node, module):
            bound.add(node)
        elif node.users and all(user in bound and node in _taken(user) for user in node.users):
            bound.add(node)
            if node.op == "get_attr":
                changed = _finite_constant(node, module) or changed
            else:
                changed = _added(node, module, names) or changed
    return changed


def _is_softmax(node: fx.Node, module: nn.Module) -> bool:
    if node.op == "call_module":
        return isinstance(module.get_submodule(str(node.target)), nn.Softmax)
    named = node.op in ("call_function", "call_method") and operator_name(node.target)
    return named in ("softmax", "scaled_dot_product_attention")


def _taken(node: fx.Node) -> tuple[Any, ...]:
    """The arguments of a node in which minus infinity masks scores."""
    name = operator_name(node.target)
    if node.op == "call_module" or name == "softmax":
        return node.args[:1]
    if name == "scaled_dot_product_attention":
        return (*node.args[3:4], node.kwargs.get("attn_mask"))
    if name in ("add", "iadd") and not node.kwargs:
        return node.args
    if name == "where":
        return node.args[1:3]
    return node.args[:1] if name == "masked_fill" or name in _MOVES else ()


def _finite_constant(node: fx.Node, module: nn.Module) -> bool:
    """Let a node read a finite copy of its constant; whether that was needed."""
    outer, _, last = str(node.target).rpartition(".")
    owner: Any = module.get_submodule(outer)
    value = getattr(owner, last)
    real = isinstance(value, torch.Tensor) and value.is_floating_point()
    if not real or not bool((value < MINUS_INFINITY).any()):
        return False
    path = f"{last}_finite"
    if not hasattr(owner, path):
        owner.register_buffer(path, value.detach().masked_fill(value < MINUS_INFINITY, MASKED))
    node.target = f"{outer}.{path}" if outer else path
    return True


def _added(node: fx.Node, module: nn.Module, names: dict[str, str]) -> bool:
    """Make a sum of `masked_fill` or `where` with minus infinity; whether it was one."""
    given = (*node.args, *(node.kwargs[key] for key in ("mask", "value") if key in node.kwargs))
    name = operator_name(node.target)
    if name not in ("masked_fill", "where") or len(given) != 3:
        return False
    low = [isinstance(one, float) and one < MINUS_INFINITY for one in given]
    if name == "masked_fill":
        scores, condition, numbers = given[0], given[1], (MASKED, 0.0)
    else:
        scores, condition = given[1] if low[2] else given[2], given[0]
        numbers = (0.0, MASKED) if low[2] else (MASKED, 0.0)
    if sum(low) != 1 or not isinstance(scores, fx.Node):
        return False
    known = _constant(condition, module)
    with node.graph.inserting_before(node):
        if known is None:
            mask = node.graph.call_function(torch.where, (condition, *numbers))
            names[mask.name] = f"{names.get(node.name, node.name)}/mask"
        else:
            path = f"{node.name}_mask"
            while hasattr(module, path):
                path += "_"
            module.register_buffer(path, torch.where(known, *numbers).to(torch.float32))
            mask = node.graph.get_attr(path)
    node.op, node.target, node.args, node.kwargs = "call_function", operator.add, (scores, mask), {}
    if known is not None:
        _erase(condition)
    return True


def _erase(node: Any) -> None:
    """Take a node that nothing reads out of its graph, and what only it read."""
    if isinstance(node, fx.Node) and not node.users and node.op != "placeholder":
        before = node.all_input_nodes
        node.graph.erase_node(node)
        for one in before:
            _erase(one)


def _constant(node: Any, module: nn.Module) -> torch.Tensor | None:
    """The value of a condition that no input decides, or None."""
    if not isinstance(node, fx.Node):
        return node if isinstance(node, torch.Tensor) else None
    if node.op == "get_attr":
        outer, _, last = str(node.target).rpartition(".")
        found = getattr(module.get_submodule(outer), last)
        return found if isinstance(found, torch.Tensor) else None
    if node.op not in ("call_function", "call_method"):
        return None
    values = {one: _constant(one, module) for one in node.all_input_nodes}
    if any(value is None for value in values.values()):
        return None
    args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
    called: Any = node.target
    made = called(*args, **kwargs) if callable(called) else getattr(args[0], called)(*args[1:])
    return made if isinstance(made, torch.Tensor) else None
