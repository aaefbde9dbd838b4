"""Layers of emitted bindings, and their names.

What comes in: bindings with the ONNX nodes that they came from. What goes out: a QDQ module as
`accelsim.quantize` documents it. It must not know what operators compute.

A layer is what one quantize needs and no other does. Float operators that several layers need are
layers of their own, each with its node's name. A layer is called after its last operator that is no
activation and only renames nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.names import UniqueNames
from accelsim.quantize.onnx.emitter import ACTIVATIONS, Bound
from accelsim.quantize.spans import with_members, with_reasons, with_span

_ACTIVATIONS = {"Relu", "Clip", "Dropout"}
_MOVES = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "Transpose"}
_LATE = {"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "MatMulInteger", "ConvInteger"}
AT_RUN_TIME = "its scale is known only at run time (dynamic quantization)"
Group = tuple[str, Any]  # ("layer", variable of the quantize), ("node", name) or ("end", "")


@dataclass(frozen=True, slots=True)
class Named:
    """A module, its layers in order, and each layer's ONNX nodes."""

    module: Any
    layers: tuple[str, ...]
    nodes: dict[str, tuple[OnnxNode, ...]]
    tensors: dict[str, str]  # layer, or input that is quantized first → the file's integer tensor


def named_module(
    bindings: Sequence[Bound],
    parameters: Sequence[Any],
    results: list[Any],
    stored: Mapping[Any, str],
) -> Named:
    """The module whose `main` returns a tuple of the results, with a span on every call.

    `stored` has the file's name of each quantized variable.
    """
    bindings = _live(bindings, results)
    groups = _groups(bindings, results)
    members = _members(bindings, groups)
    names = _names(bindings, groups, members, parameters)
    block: list[Any] = []
    ends = _ends(bindings)
    producers = {end: names[groups[end]] for end in ends}
    for one in bindings:
        value = one.value
        if isinstance(value, relax.Call):
            name = names.get(groups.get(one.var, ("", None)), "")
            if _operator(value) == "relax.dequantize" and groups[one.var][0] == "end":
                direct = any(result.same_as(one.var) for result in results)
                name = f"{producers.get(value.args[0], 'output')}/dequantize" if direct else name
            value = _kept(with_span(value, name), value)
        block.append(relax.VarBinding(one.var, value))
    tuple_value = relax.BlockBuilder().normalize(relax.Tuple(results))
    returned = relax.Var("result", tuple_value.ty)
    block.append(relax.VarBinding(returned, tuple_value))
    body = relax.SeqExpr([relax.DataflowBlock(block)], returned)
    main = relax.Function(list(parameters), body, ret_ty=tuple_value.ty)
    module = tvm.IRModule({"main": main.with_attr("global_symbol", "main")})
    nodes = {
        names[group]: tuple(found) for group, found in members.items() if group in names and found
    }
    kept = {name: tuple(node.name for node in found) for name, found in nodes.items()}
    module = with_members(relax.transform.Normalize()(module), kept)
    late = {name for name, found in nodes.items() if any(n.operator in _LATE for n in found)}
    module = with_reasons(module, dict.fromkeys(sorted(late), AT_RUN_TIME))
    order = dict.fromkeys(names.get(groups[one.var], "") for one in bindings)
    layers = tuple(name for name in order if name in kept)
    tensors = {
        names[groups[one.var]]: stored[one.var]
        for one in bindings
        if one.var in ends and one.var in stored
    }
    return Named(module, layers, nodes, tensors)


def _live(bindings: Sequence[Bound], results: list[Any]) -> list[Bound]:
    """The bindings that the results need."""
    wanted = set(results)
    kept: list[Bound] = []
    for one in reversed(bindings):
        if one.var in wanted:
            kept.append(one)
            wanted.update(_inputs(one.value))
    return kept[::-1]


def _kept(call: Any, before: Any) -> Any:
    """A call with the type of the one that it replaces."""
    return relax.BlockBuilder().normalize(call) if call is not before else call


def _operator(value: Any) -> str:
    return str(getattr(getattr(value, "op", None), "name", ""))


def _ends(bindings: Sequence[Bound]) -> dict[Any, Any]:
    """Variable that ends a layer → what is quantized: a quantize, or the clip of its integers."""
    ends: dict[Any, Any] = {}
    for one in bindings:
        if _operator(one.value) == "relax.quantize":
            ends[one.var] = one.value.args[0]
        elif _clips_integers(one):
            source = one.value.args[0]
            ends[one.var] = ends.pop(source, source)
    return ends


def _clips_integers(one: Bound) -> bool:
    return _operator(one.value) == "relax.clip" and str(one.var.ty.dtype) in ACTIVATIONS


def _inputs(value: Any) -> list[Any]:
    if isinstance(value, relax.Var):
        return [value]
    if isinstance(value, relax.TupleGetItem):
        return _inputs(value.tuple_value)
    fields = value.args if isinstance(value, relax.Call) else getattr(value, "fields", ())
    return [variable for field in fields for variable in _inputs(field)]


def _groups(bindings: Sequence[Bound], results: list[Any]) -> dict[Any, Group]:
    """Variable → the layer that it belongs to."""
    needed: dict[Any, set[Group]] = {}
    for result in results:
        needed.setdefault(result, set()).add(("end", ""))
    groups: dict[Any, Group] = {}
    ends = _ends(bindings)
    for one in reversed(bindings):
        own = needed.get(one.var, set())
        if one.var in ends:
            group: Group = ("layer", one.var)
        elif len(own) == 1:
            group = next(iter(own))
        else:
            group = ("node", one.node.name if one.node is not None else "")
        groups[one.var] = group
        for variable in _inputs(one.value):
            needed.setdefault(variable, set()).add(group)
    return groups


def _members(bindings: Sequence[Bound], groups: dict[Any, Group]) -> dict[Group, list[OnnxNode]]:
    """The nodes of each layer in order, quantizes left out."""
    found: dict[Group, dict[str, OnnxNode]] = {}
    for one in bindings:
        known = found.setdefault(groups[one.var], {})
        if one.node is None or _clips_integers(one):
            continue
        if one.node.operator != "QuantizeLinear":
            known[one.node.name] = one.node
    return {group: list(nodes.values()) for group, nodes in found.items()}


def _names(
    bindings: Sequence[Bound],
    groups: dict[Any, Group],
    members: dict[Group, list[OnnxNode]],
    parameters: Sequence[Any],
) -> dict[Group, str]:
    inputs = {parameter: str(parameter.name) for parameter in parameters}
    unique = UniqueNames(inputs.values())
    names: dict[Group, str] = {}
    boundary: set[str] = set()
    ends = _ends(bindings)
    for one in bindings:
        group = groups[one.var]
        if group in names:
            continue
        found = members[group]
        if found:
            names[group] = unique.take(_title(found))
        elif one.var in ends:
            name = inputs.get(ends[one.var], "")
            if name and name not in boundary:
                boundary.add(name)
                names[group] = name
            else:
                names[group] = unique.take(one.node.name if one.node is not None else "quantize")
    return names


def _title(nodes: Sequence[OnnxNode]) -> str:
    """The last operator that computes; else the last activation, else the last of all."""
    for passed in (_ACTIVATIONS | _MOVES, _MOVES, set()):
        kept = [node for node in nodes if node.operator not in passed]
        if kept:
            return kept[-1].name
    return nodes[-1].name
