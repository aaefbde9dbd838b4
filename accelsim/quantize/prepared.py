"""Modules that a user prepared and calibrated or trained: FX and eager, post-training and QAT.

What comes in: a `SourceModel` whose module has observers or fake quantizers. What goes out: the
network that PyTorch converts it to, in the forms that quantization here gives. It must not know
Relax or the hardware.
"""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx, nn

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.calibrated import (
    check_observer,
    check_width,
    is_observer,
    never_saw_data,
    observers_by_layer,
)
from accelsim.quantize.fx_graph import FxQuantized, Prepared, convert, quantizing
from accelsim.quantize.int8_network import read_int8
from accelsim.quantize.names import UniqueNames, operator_name

_ATTRIBUTES = "_observed_graph_module_attrs"
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.Identity)


def is_prepared_fx(module: nn.Module) -> bool:
    """Whether a module comes from prepare_fx or prepare_qat_fx."""
    return isinstance(module, fx.GraphModule) and _ATTRIBUTES in module.meta


def convert_prepared_fx(source: SourceModel) -> FxQuantized:
    """Convert a module of prepare_fx or prepare_qat_fx as it was calibrated or trained.

    Raises ModelError, naming the layer, for observers that cannot give a scale, and where PyTorch
    cannot convert the module.
    """
    with quantizing():
        module: Any = copy.deepcopy(source.float_module).eval()
    scopes: Mapping[str, tuple[str, Any]] = module.meta[_ATTRIBUTES].node_name_to_scope
    user_names = _user_names(module, scopes)
    _bypass_dropout(module)
    for node in module.graph.nodes:
        layer = _observer(module, node)
        if layer is not None:
            watched: Any = node.args[0]
            check_observer(layer, user_names.get(watched.name, watched.name), source.name)
    names = source.input_names
    return convert(Prepared(module, _chain(user_names), user_names, source.name, names))


def convert_to_int8(source: SourceModel) -> SourceModel:
    """The same model with what convert_fx makes of its prepared module.

    Raises ModelError where PyTorch cannot convert it.
    """
    from torch.ao.quantization.quantize_fx import convert_fx

    try:
        with quantizing():
            module = convert_fx(copy.deepcopy(source.float_module).eval())
    except Exception as error:  # torch raises many kinds here
        raise ModelError(f"model {source.name} cannot be converted: {reason(error)}") from error
    return dataclasses.replace(source, float_module=module)


def convert_prepared_eager(source: SourceModel) -> FxQuantized:
    """Convert a module of torch.ao.quantization.prepare or prepare_qat, calibrated or trained.

    Raises ModelError, naming the layer, for observers that cannot give a scale, and where PyTorch
    cannot convert the module.
    """
    with quantizing():
        module = copy.deepcopy(source.float_module).eval()
        observers = dict(observers_by_layer(module))
        for layer, observer in observers.items():
            check_width(observer, layer, source.name)
            if not never_saw_data(observer):
                check_observer(observer, layer, source.name)
        try:
            convert_modules: Any = torch.ao.quantization.convert
            int8 = convert_modules(module)
        except Exception as error:  # torch raises many kinds here
            raise ModelError(f"model {source.name} cannot be converted: {reason(error)}") from error
    unseen = frozenset(layer for layer, one in observers.items() if never_saw_data(one))
    return read_int8(dataclasses.replace(source, float_module=int8), unseen)


def _observer(module: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    if node.op != "call_module":
        return None
    layer = module.get_submodule(str(node.target))
    return layer if is_observer(layer) else None


def _user_names(module: fx.GraphModule, scopes: Mapping[str, tuple[str, Any]]) -> dict[str, str]:
    """The user's name of each operator of the float graph, fused ones too, in execution order."""
    present = {node.name: node for node in module.graph.nodes}
    unique = UniqueNames(node.name for node in module.graph.nodes if node.op == "placeholder")
    names: dict[str, str] = {}
    for name, (scope, _) in scopes.items():
        node = present.get(name)
        if name == "output" or (node is not None and node.op in ("placeholder", "get_attr")):
            continue
        if scope.replace(".", "_") == name.lstrip("_") or (node and node.op == "call_module"):
            names[name] = unique.take(scope if node is None else str(node.target))
            continue
        own = operator_name(node.target if node is not None else name.rstrip("0123456789_"))
        names[name] = unique.take(f"{scope}/{own}" if scope else own)
    return names


def _chain(names: Mapping[str, str]) -> fx.Graph:
    """All operators one behind the other: what was fused belongs to what is before it."""
    graph = fx.Graph()
    last = graph.placeholder("input")
    for name in names:
        last = graph.create_node("call_function", operator.pos, (last,), name=name)
    return graph


def _bypass_dropout(module: fx.GraphModule) -> None:
    """Remove what does nothing in eval mode, with the observer of its result.

    In training that observer saw other values than the one before it, and tensors that are only
    moved or pooled afterwards share it. PyTorch's int8 network goes on with the levels from before
    the dropout, so all of them get the observer of its input.
    """
    replaced: dict[nn.Module, Any] = {}
    for node in list(module.graph.nodes):
        source = node.args[0] if node.args else None
        if not isinstance(source, fx.Node) or not _does_nothing(module, node):
            continue
        if _observer(module, source) is None:
            continue
        for user in list(node.users):
            watcher = _observer(module, user)
            if watcher is not None:
                replaced[watcher] = source.target
                user.replace_all_uses_with(source)
                module.graph.erase_node(user)
        node.replace_all_uses_with(source)
        module.graph.erase_node(node)
    for node in module.graph.nodes:
        watcher = _observer(module, node)
        if watcher is not None:
            node.target = replaced.get(watcher, node.target)
    module.recompile()


def _does_nothing(module: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return isinstance(module.get_submodule(str(node.target)), _DROPOUTS)
    return node.op == "call_function" and operator_name(node.target) == "dropout"
