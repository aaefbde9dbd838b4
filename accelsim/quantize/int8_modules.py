"""Modules that PyTorch has converted to int8 already, traced and packed for the qnnpack engine.

What comes in: an FX or eager module whose weights are packed, for any engine. What goes out: its
graph as a GraphModule that the qnnpack engine runs, the user's name of each node, and weights and
biases as they were before packing. It must not know Relax or how layers are grouped.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.names import UniqueNames, operator_name

_POST = ".activation_post_process"
_BYPASSED = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_SCALE = re.compile(r"(.*)_scale_\d+")
_WEIGHTED = ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "linear")


@dataclass(frozen=True, slots=True)
class Weights:
    """What a convolution or linear layer of PyTorch's int8 network has packed."""

    weight: Any  # torch tensor of qint8, per tensor or per channel
    bias: Any | None  # float32 (out_channels,)


def is_int8(module: nn.Module) -> bool:
    """Whether a module holds packed weights or calls PyTorch's quantized operators."""
    return any(_is_quantized_module(one) for one in module.modules()) or any(
        _namespace(node) == "quantized" or operator_name(node.target) == "quantize_per_tensor"
        for graph in _graphs(module)
        for node in graph.nodes
        if node.op == "call_function"
    )


def trace_int8(module: nn.Module, model: str) -> tuple[fx.GraphModule, dict[str, list[str]]]:
    """A copy that the qnnpack engine runs, and the user's names of each node.

    Operators that do nothing are gone from the graph; their names are listed with the operator
    before them. Call this under `qnnpack_engine()`.

    Returns:
        The traced module, and node name → the user's names: the operator's own, then those of the
        identities that followed it (batch norm and ReLU that eager fusion left behind).

    Raises:
        ModelError: not traceable, dynamically quantized, or weights that qnnpack cannot pack.
    """
    module = copy.deepcopy(module).eval()
    _refuse_dynamic(module, model)
    try:
        traced = fx.GraphModule(module, _Tracer(module).trace(module))
    except Exception as error:  # whatever the user's forward raises on symbolic values
        raise ModelError(
            f"int8 model {model} cannot be traced: {reason(error)}; put torch.fx.wrap on the "
            "function that needs values"
        ) from error
    names = _bypass(traced, _names(traced))
    _repack(traced, model)
    traced.recompile()
    return traced, names


class _Tracer(fx.Tracer):
    """Traces into what a user's tracer traced into, and no further.

    Modules that a graph calls were leaves of it: a custom module whose forward looks at values.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._leaves = {
            f"{path}.{node.target}".lstrip(".")
            for path, one in module.named_modules()
            if isinstance(one, fx.GraphModule)
            for node in one.graph.nodes
            if node.op == "call_module"
        }

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of the module is one node."""
        inner = isinstance(m, fx.GraphModule) or any(map(_is_quantized_module, m.children()))
        known = module_qualified_name in self._leaves and not inner
        return known or super().is_leaf_module(m, module_qualified_name)


def packed_weights(module: fx.GraphModule, node: fx.Node) -> Weights | None:
    """Weight and bias of a convolution or linear node, None for any other node."""
    if node.op == "call_module":
        layer: Any = module.get_submodule(str(node.target))
        if not hasattr(layer, "_weight_bias") and not hasattr(layer, "weight"):
            return None
        if not _is_quantized_module(layer) or not hasattr(layer, "set_weight_bias"):
            return None
        if hasattr(layer, "_weight_bias"):
            return Weights(*layer._weight_bias())
        return Weights(layer.weight(), layer.bias())
    kind = operator_name(node.target).removesuffix("_relu")
    if _namespace(node) != "quantized" or kind not in _WEIGHTED:
        return None
    return Weights(*_unpack(kind, packed_of(module, node)))


def packed_of(module: fx.GraphModule, node: fx.Node) -> Any:
    """The packed parameters that a functional convolution or linear node reads."""
    source: Any = node.args[1]
    owner, _, attribute = str(source.target).rpartition(".")
    return getattr(module.get_submodule(owner), attribute)


def _unpack(kind: str, packed: Any) -> tuple[Any, Any]:
    unpack = getattr(torch.ops.quantized, f"{kind}_unpack")
    weight, bias = unpack(packed)
    return weight, bias


def _is_quantized_module(module: nn.Module) -> bool:
    place = type(module).__module__
    return place.startswith("torch.ao.nn.") and ".quantized" in place and ".reference" not in place


def _namespace(node: fx.Node) -> str:
    target: Any = node.target
    if node.op != "call_function":
        return ""
    named = getattr(target, "namespace", "") or getattr(target, "_qualified_op_name", "")
    return str(named).partition("::")[0]


def _graphs(module: nn.Module) -> Iterator[fx.Graph]:
    for one in module.modules():
        if isinstance(one, fx.GraphModule):
            yield one.graph


def _refuse_dynamic(module: nn.Module, model: str) -> None:
    for name, layer in module.named_modules():
        place = type(layer).__module__
        if place.startswith("torch.ao.nn.") and ".quantized.dynamic" in place:
            raise ModelError(
                f"layer '{name}' of {model} is quantized dynamically; only static quantization is "
                "supported"
            )


def _names(traced: fx.GraphModule) -> dict[fx.Node, str]:
    """The user's name of each operator: module path, or "path of the caller/function"."""
    unique = UniqueNames(node.name for node in traced.graph.nodes if node.op == "placeholder")
    names: dict[fx.Node, str] = {}
    scopes = {name.replace(".", "_"): name for name, _ in traced.named_modules()}
    for node in traced.graph.nodes:
        if node.op == "call_module":
            if str(node.target).endswith(_POST):
                continue
            names[node] = unique.take(str(node.target))
        elif node.op in ("call_function", "call_method"):
            path = _functional_path(node)
            if path is None:
                own = operator_name(node.target).removesuffix("_relu") or node.name
                scope = _scope(node) or _scale_scope(node, scopes)
                path = f"{scope}/{own}" if scope else own
            names[node] = unique.take(path)
    return names


def _functional_path(node: fx.Node) -> str | None:
    """Path of the QFunctional that called the operator, which its own identity tells."""
    for user in node.users:
        if user.op == "call_module" and str(user.target).endswith(_POST):
            return str(user.target).removesuffix(_POST)
    return None


def _scale_scope(node: fx.Node, scopes: dict[str, str]) -> str:
    """Path of the module in which convert_fx found a function: its output scale is named so."""
    for argument in node.all_input_nodes:
        found = _SCALE.fullmatch(str(argument.target)) if argument.op == "get_attr" else None
        if found is not None and found[1] in scopes:
            return scopes[found[1]]
    return ""


def _scope(node: fx.Node) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return str(stack[-1][0]) if stack else ""


def _bypass(traced: fx.GraphModule, names: dict[fx.Node, str]) -> dict[str, list[str]]:
    """Remove identities; node name → own name and those of the identities after it."""
    found: dict[str, list[str]] = {node.name: [name] for node, name in names.items()}
    for node in list(traced.graph.nodes):
        source = node.args[0] if node.args else None
        if not isinstance(source, fx.Node) or not _does_nothing(traced, node):
            continue
        own = found.pop(node.name, [])
        if node in names and source.name in found and not _is_dropout(traced, node):
            found[source.name] += own
        node.replace_all_uses_with(source)
        traced.graph.erase_node(node)
    return found


def _does_nothing(traced: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        layer = traced.get_submodule(str(node.target))
        return isinstance(layer, _BYPASSED)
    return node.op == "call_function" and operator_name(node.target) == "dropout"


def _is_dropout(traced: fx.GraphModule, node: fx.Node) -> bool:
    called = node.op == "call_module"
    return not called or not isinstance(traced.get_submodule(str(node.target)), nn.Identity)


def _repack(traced: fx.GraphModule, model: str) -> None:
    """Pack every weight again for the engine that is selected."""
    done: set[str] = set()
    for node in traced.graph.nodes:
        try:
            weights = packed_weights(traced, node)
            if weights is None:
                continue
            if node.op == "call_module":
                layer: Any = traced.get_submodule(str(node.target))
                if str(node.target) not in done:
                    layer.set_weight_bias(weights.weight, weights.bias)
                    done.add(str(node.target))
            else:
                _repack_attribute(traced, node, weights, done)
        except RuntimeError as error:
            raise ModelError(
                f"the weights of '{node.target}' of {model} cannot be packed for the qnnpack "
                f"engine: {reason(error)}"
            ) from error


def _repack_attribute(
    traced: fx.GraphModule, node: fx.Node, weights: Weights, done: set[str]
) -> None:
    source: Any = node.args[1]
    if str(source.target) in done:
        return
    kind = operator_name(node.target).removesuffix("_relu")
    packed = packed_of(traced, node)
    settings: list[Any] = []
    if kind != "linear":
        settings = [packed.stride(), packed.padding()]
        if kind.startswith("conv_transpose"):
            settings.append(packed.output_padding())
        settings += [packed.dilation(), packed.groups()]
    pack = getattr(torch.ops.quantized, f"{kind}_prepack")
    owner, _, attribute = str(source.target).rpartition(".")
    setattr(traced.get_submodule(owner), attribute, pack(weights.weight, weights.bias, *settings))
    done.add(str(source.target))
