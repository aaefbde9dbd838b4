"""Modules of PT2E quantization, which torchao prepares and converts.

What comes in: a GraphModule of prepare_pt2e, prepare_qat_pt2e or convert_pt2e. What goes out: the
exported program of the converted module. It must not know Relax or how layers are named.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import fx, nn

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError, ToolError
from accelsim.importer.reasons import reason
from accelsim.quantize.calibrated import check_observer, is_observer
from accelsim.quantize.export_program import export_program
from accelsim.quantize.names import is_dequantize, is_quantize


def is_pt2e(module: nn.Module) -> bool:
    """Whether a module is a graph of exported operators that was prepared or converted."""
    if not isinstance(module, fx.GraphModule):
        return False
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    converted = any(is_quantize(node) or is_dequantize(node) for node in nodes)
    exported = any(getattr(node.target, "namespace", "") == "aten" for node in nodes)
    return converted or (exported and any(is_observer(one) for one in module.modules()))


def export_pt2e(source: SourceModel) -> torch.export.ExportedProgram:
    """Convert where that is still to be done, and export.

    Raises:
        ModelError: observers that cannot give a scale, naming the operator, or a module that cannot
            be converted or exported.
        ToolError: torchao is missing.
    """
    module: Any = source.float_module
    if any(is_observer(one) for one in module.modules()):
        module = _converted(module, source.name)
    return export_program(module, source)


def _converted(module: Any, model: str) -> Any:
    for node in module.graph.nodes:
        watcher = module.get_submodule(str(node.target)) if node.op == "call_module" else None
        if watcher is not None and is_observer(watcher):
            watched = node.args[0]
            if watched.op != "get_attr":
                check_observer(watcher, _layer(watched), model)
    convert = _convert_pt2e()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return convert(copy.deepcopy(module))
    except Exception as error:  # torch raises many kinds here
        raise ModelError(f"model {model} cannot be converted: {reason(error)}") from error


def _convert_pt2e() -> Any:
    try:
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e
    except ImportError as error:
        raise ToolError(
            "a module of prepare_pt2e needs torchao to be converted; pip install 'accelsim[pt2e]'"
        ) from error
    return convert_pt2e


def _layer(node: fx.Node) -> str:
    """Path of the module that an exported operator came from, else the operator's name."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return path.removeprefix("L['self'].") or node.name
