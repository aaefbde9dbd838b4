"""The user's names of layers, read from torch.fx graphs.

What comes in: the float module, and a graph with quantize and dequantize nodes. What goes out: one
`LayerName` for each quantize node, in execution order, and one for what follows the last. It must
not know Relax."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import fx, nn

Target = Any

_ACTIVATION_MODULES = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Identity, nn.Dropout, nn.Dropout2d)
_ACTIVATIONS = frozenset(
    {"relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "clip", "dropout", "alias"}
    | {"detach", "clone", "contiguous"}
)
_SHAPE_READS = frozenset({"getattr", "getitem", "size", "dim", "shape", "sym_size"})

_SELECTED = _SHAPE_READS | {"zeros", "zeros_like", "select"}
"""What a user did not write as a layer: results of one with several, and its first state."""


@dataclass(frozen=True, slots=True)
class LayerName:
    """What one group of operators between dequantize and quantize is called."""

    name: str
    members: tuple[str, ...]  # empty for the quantize of a model input
    node: str  # fx name of the group's last operator, "" where the group has none


@dataclass(frozen=True, slots=True)
class LayerNames:
    """Names of all groups: one for each activation quantize, in order, and the tail's."""

    quantized: tuple[LayerName, ...]
    tail: LayerName | None  # float operators behind the last dequantize, None where there are none


class UniqueNames:
    """Hands out names; a second use of one gets "_1"."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def take(self, name: str) -> str:
        """`name`, or `name_k` with the smallest free k."""
        candidate, suffix = name, 0
        while candidate in self._taken:
            suffix += 1
            candidate = f"{name}_{suffix}"
        self._taken.add(candidate)
        return candidate


def with_inputs(names: LayerNames, inputs: Mapping[str, str]) -> LayerNames:
    """The same, where the quantizes of model inputs have the user's names of these.

    An input that is called like a layer keeps the name that it has in `inputs` as a key.
    """
    layers = [*names.quantized, *([] if names.tail is None else [names.tail])]
    taken = {layer.name for layer in layers if layer.members or layer.name not in inputs}
    renamed = tuple(
        replace(layer, name=inputs[layer.name])
        if not layer.members and inputs.get(layer.name, layer.name) not in taken | {layer.name}
        else layer
        for layer in names.quantized
    )
    return LayerNames(renamed, names.tail)


def operator_name(target: Target) -> str:
    """A function's or method's plain name: `aten.add_.Tensor` is "add"."""
    text = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    return str(text).split(".")[0].strip("_")


def traced_names(graph: fx.Graph, scopes: Mapping[str, tuple[str, Any]]) -> dict[str, str]:
    """Map the fx name of each operator of a float graph to the user's name.

    A node that carries "user_name" in its metadata (a rebuilt module) keeps that.
    """
    unique = UniqueNames(node.name for node in graph.nodes if node.op == "placeholder")
    names: dict[str, str] = {}
    for node in graph.nodes:
        if node.op == "call_module":
            names[node.name] = unique.take(str(node.target))
        elif node.op in ("call_function", "call_method"):
            scope = scopes.get(node.name, ("", None))[0]
            own = operator_name(node.target)
            plain = f"{scope}/{own}" if scope else own
            names[node.name] = unique.take(node.meta.get("user_name", plain))
    return names


def fused_members(
    float_graph: fx.Graph, names: Mapping[str, str], kept: Iterable[str]
) -> dict[str, list[str]]:
    """Map each kept node to the user's names of it and of what was fused into it.

    Batch norm and ReLU that vanished belong to the nearest kept node before them.
    """
    present = set(kept)
    members: dict[str, list[str]] = {}
    for node in float_graph.nodes:
        if node.name not in names:
            continue
        owner = node
        while owner.name not in present and owner.all_input_nodes:
            owner = owner.all_input_nodes[0]
        members.setdefault(owner.name, []).append(names[node.name])
    return members


def is_quantize(node: fx.Node) -> bool:
    """Whether the node is a quantized_decomposed quantize of any kind and overload."""
    return _decomposed(node, "quantize_per_")


def is_activation_quantize(node: fx.Node, is_constant: Callable[[fx.Node], bool]) -> bool:
    """Whether the node quantizes something computed, and no weight."""
    return is_quantize(node) and not is_constant(node.all_input_nodes[0])


def is_dequantize(node: fx.Node) -> bool:
    """Whether the node is a quantized_decomposed dequantize of any kind and overload."""
    return _decomposed(node, "dequantize_per_")


def _decomposed(node: fx.Node, prefix: str) -> bool:
    target = node.target
    return (
        node.op == "call_function"
        and getattr(target, "namespace", "") == "quantized_decomposed"
        and str(getattr(target, "__name__", "")).startswith(prefix)
    )


def group_names(
    graph: fx.Graph,
    module: nn.Module,
    is_constant: Callable[[fx.Node], bool],
    name_of: Callable[[fx.Node], str],
    members_of: Callable[[fx.Node], Iterable[str]],
) -> LayerNames:
    """Name every group of operators that ends in an activation quantize, and the tail."""
    unique = UniqueNames(node.name for node in graph.nodes if node.op == "placeholder")
    seen: set[fx.Node] = set()
    quantized: list[LayerName] = []
    producer: dict[fx.Node, str] = {}
    tail: LayerName | None = None
    for node in graph.nodes:
        if is_activation_quantize(node, is_constant):
            group = _operators_before(node, seen, is_constant)
            name = _named(group, module, name_of, members_of, unique)
            if name is None:
                name = _without_operators(node.args[0], producer, unique)
            producer[node] = name.name
            quantized.append(name)
        elif node.op == "output":
            group = _operators_before(node, seen, is_constant)
            tail = _named(group, module, name_of, members_of, unique)
    return LayerNames(tuple(quantized), tail)


def _without_operators(
    source: fx.Node, producer: Mapping[fx.Node, str], unique: UniqueNames
) -> LayerName:
    if source.op == "placeholder":  # quantized a second time, it is another tensor
        again = source.name in producer.values()
        return LayerName(unique.take(source.name) if again else source.name, (), "")
    before = producer.get(source.all_input_nodes[0], source.name)
    name = unique.take(f"{before}/requantize")
    return LayerName(name, (name,), "")


def _operators_before(
    end: fx.Node, seen: set[fx.Node], is_constant: Callable[[fx.Node], bool]
) -> list[fx.Node]:
    """Operators that `end` needs, back to the dequantize nodes, in execution order."""
    pending, found = list(end.all_input_nodes), set()
    while pending:
        node = pending.pop()
        if node in seen or node.op in ("placeholder", "get_attr") or is_constant(node):
            continue
        if is_quantize(node) or is_dequantize(node):
            continue
        seen.add(node)
        found.add(node)
        pending.extend(node.all_input_nodes)
    return [node for node in end.graph.nodes if node in found]


def _named(
    group: list[fx.Node],
    module: nn.Module,
    name_of: Callable[[fx.Node], str],
    members_of: Callable[[fx.Node], Iterable[str]],
    unique: UniqueNames,
) -> LayerName | None:
    if not group:
        return None
    computing = [node for node in group if not _is_activation(node, module)]
    made = [node for node in computing if operator_name(node.target) not in _SELECTED]
    anchor = (made or computing or group)[-1]
    shown = [node for node in group if operator_name(node.target) not in _SHAPE_READS] or group
    members = tuple(dict.fromkeys(name for node in shown for name in members_of(node)))
    return LayerName(unique.take(name_of(anchor)), members, group[-1].name)


def _is_activation(node: fx.Node, module: nn.Module) -> bool:
    if node.op == "call_module":
        return isinstance(module.get_submodule(str(node.target)), _ACTIVATION_MODULES)
    return operator_name(node.target) in _ACTIVATIONS
