"""The float module in a form that FX quantization gets right.

What comes in: a float module. What goes out: a module that computes the same, its graph, and the
user's names of its operators. It must not know observers or dtypes.

FX keeps one output scale for a module that is called twice, and fuses both calls when one is
followed by ReLU: a second call gets a copy of its own. Dropout and identity do nothing in eval mode
and would become layers: they are bypassed. Quantized convolutions take no padding="same": it
becomes numbers. A softmax that is called as a function becomes a module, since only modules have a
result in steps of 1/256, whatever the calibration; PyTorch's int8 softmax takes no negative axis.
Its int8 clamp wants both limits: a clamp with one becomes a minimum or maximum with a number.
A layer that is called by its argument's name is called by place. Minus infinity in a mask in front
of a softmax, which no scale can hold, becomes a low number."""

from __future__ import annotations

import copy
import inspect
import operator
import traceback
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn

from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.finite_masks import finite_masks
from accelsim.quantize.names import operator_name, traced_names

_SEVERAL = frozenset({"chunk", "split", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split"})
_BYPASSED = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.Identity)


def float_graph(module: nn.Module, model: str) -> tuple[nn.Module, fx.Graph, dict[str, str]]:
    """Trace and repair.

    Args:
        module: in eval mode; changed in place where a padding is "same".
        model: the user's name of the model, for errors.

    Returns:
        The module to quantize, its graph as FX quantization will trace it, and the user's name of
        each operator of that graph by fx name.

    Raises:
        ModelError: not traceable, or "same" padding that differs between two sides.
    """
    _number_same_padding(module, model)
    _give_gains(module)
    graph, scopes = _trace(module, model)
    names = traced_names(graph, scopes)
    _refuse_slices_of_tuples(graph, names, model)
    ordered = _arguments_in_order(graph, module)
    bypassed = _bypass(graph, module)
    unshared = _unshare(graph, module, names)
    completed = _complete_convolutions(graph)
    made = _softmax_modules(graph, module)
    limited = _one_sided_clamps(graph)
    masked = finite_masks(graph, module, names)
    if not (ordered or bypassed or unshared or completed or made or limited or masked):
        return module, graph, names
    repaired = fx.GraphModule(module, graph).eval()
    retraced, _ = _trace(repaired, model)
    pairs = list(zip(repaired.graph.nodes, retraced.nodes, strict=True))
    renamed = {new.name: names[old.name] for old, new in pairs if old.name in names}
    return repaired, retraced, renamed


def _give_gains(module: nn.Module) -> None:
    """Gains of 1 and offsets of 0 for batch norms without, which PyTorch's int8 ones must have."""
    for norm in module.modules():
        kind = isinstance(norm, nn.BatchNorm2d | nn.BatchNorm3d)
        if kind and getattr(norm, "weight", None) is None:
            size = int(norm.num_features)  # type: ignore[arg-type]
            norm.weight = nn.Parameter(torch.ones(size))
            norm.bias = nn.Parameter(torch.zeros(size))


def _refuse_slices_of_tuples(graph: fx.Graph, names: dict[str, str], model: str) -> None:
    """Raise ModelError for a slice of several tensors, which FX observes as if it were one."""
    for node in graph.nodes:
        sliced = node.target is operator.getitem and isinstance(node.args[1], slice)
        if sliced and operator_name(node.args[0].target) in _SEVERAL:
            layer = names.get(node.args[0].name, node.args[0].name)
            raise ModelError(
                f"model {model} takes a slice of the tuple of tensors that layer '{layer}' gives, "
                "which PyTorch cannot quantize; index its tensors one by one"
            )


def _arguments_in_order(graph: fx.Graph, module: nn.Module) -> bool:
    """Give modules their arguments by place and not by name; whether any had such.

    FX quantization looks for a layer's input in the first place only.
    """
    named = [node for node in graph.nodes if node.op == "call_module" and node.kwargs]
    for node in named:
        forward = inspect.signature(module.get_submodule(str(node.target)).forward)
        bound = forward.bind(*node.args, **node.kwargs)
        node.args, node.kwargs = bound.args, bound.kwargs
    return bool(named)


def _complete_convolutions(graph: fx.Graph) -> bool:
    """Give functional convolutions all their arguments, lengths as lists; whether any changed.

    PyTorch's quantized kernels know no defaults and no single number for two axes.
    """
    changed = False
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not nn.functional.conv2d:
            continue
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        given = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
        values = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1} | given
        if values["padding"] == "valid":
            values["padding"] = 0
        for name in ("stride", "padding", "dilation"):
            if isinstance(values[name], int):
                values[name] = [values[name]] * 2
            elif isinstance(values[name], tuple):
                values[name] = list(values[name])
        arguments = tuple(values[name] for name in names)
        if node.args != arguments or node.kwargs:
            node.args, node.kwargs, changed = arguments, {}, True
    return changed


def _one_sided_clamps(graph: fx.Graph) -> bool:
    """Call a clamp with one limit by the function that has only that one; whether any was."""
    changed = False
    for node in graph.nodes:
        called = node.op in ("call_function", "call_method")
        if not called or operator_name(node.target) not in ("clamp", "clip"):
            continue
        given = dict(zip(("input", "min", "max"), node.args, strict=False)) | dict(node.kwargs)
        low, high = given.get("min"), given.get("max")
        if (low is None) == (high is None):
            continue
        node.op, node.target = "call_function", torch.clamp_min if high is None else torch.clamp_max
        node.args, node.kwargs = (node.args[0], low if high is None else high), {}
        changed = True
    return changed


def count_axes_from_first(module: nn.Module, examples: tuple[torch.Tensor, ...]) -> None:
    """Give each softmax module the axis that its negative one is on the examples."""

    def positive(softmax: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        softmax.dim = int(softmax.dim) % inputs[0].dim()  # type: ignore[arg-type,assignment]

    found = [one for one in module.modules() if isinstance(one, nn.Softmax)]
    negative = [one for one in found if one.dim is not None and one.dim < 0]
    hooks = [one.register_forward_pre_hook(positive) for one in negative]
    if hooks:
        module(*examples)
    for hook in hooks:
        hook.remove()


def _softmax_modules(graph: fx.Graph, module: nn.Module) -> bool:
    """Put a module in place of each call of a softmax over a given axis; whether there was one."""
    made = 0
    for node in graph.nodes:
        function = node.op in ("call_function", "call_method")
        called = function and operator_name(node.target) == "softmax"
        axis = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
        if not called or not isinstance(axis, int) or not isinstance(node.args[0], fx.Node):
            continue
        path = f"softmax_{made}"
        while hasattr(module, path):
            path += "_"
        module.add_module(path, nn.Softmax(axis))
        node.op, node.target, node.args, node.kwargs = "call_module", path, node.args[:1], {}
        made += 1
    return made > 0


def _trace(module: nn.Module, model: str) -> tuple[fx.Graph, dict[str, tuple[str, Any]]]:
    from torch.ao.quantization.fx.tracer import QuantizationTracer

    tracer = QuantizationTracer([], [])
    try:
        graph = tracer.trace(module)
    except Exception as error:  # whatever the user's forward raises on symbolic values
        at, way_out = _stopped_at(error)
        raise ModelError(
            f"model {model} cannot be traced: {reason(error)}{at}; its forward must not depend on "
            f"tensor values{way_out}"
        ) from error
    if isinstance(module, fx.GraphModule):
        for old, new in zip(module.graph.nodes, graph.nodes, strict=False):
            if old.op == new.op and "user_name" in old.meta:
                new.meta["user_name"] = old.meta["user_name"]
    return graph, tracer.node_name_to_scope


def _stopped_at(error: Exception) -> tuple[str, str]:
    """Where in the user's code tracing stopped, and what else can be done about a function there.

    Both are parts of a sentence, or empty.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if not _is_library(frame.f_code.co_filename)]
    if not own:
        return "", ""
    frame, code = own[-1], own[-1].f_code
    at = f", at {Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
    method = isinstance(frame.f_locals.get("".join(code.co_varnames[:1])), nn.Module)
    if method or not code.co_name.isidentifier():
        return at, ""
    mark = f"torch.fx.wrap('{code.co_name}')"
    return at, f", or {mark} must stand in that file, so that the function is called in float"


def _is_library(file: str) -> bool:
    folders = (Path(torch.__file__).parent, Path(__file__).parents[1])
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _number_same_padding(module: nn.Module, model: str) -> None:
    for name, layer in module.named_modules():
        if not isinstance(layer, nn.Conv2d) or not isinstance(layer.padding, str):
            continue
        total = [0, 0]
        if layer.padding == "same":
            sizes = zip(layer.kernel_size, layer.dilation, strict=True)
            total = [gap * (size - 1) for size, gap in sizes]
        if any(amount % 2 for amount in total):
            raise ModelError(
                f"convolution '{name}' of {model} has padding='same' with an even kernel, which "
                "PyTorch cannot quantize; pad explicitly"
            )
        layer.padding = (total[0] // 2, total[1] // 2)


def _bypass(graph: fx.Graph, module: nn.Module) -> bool:
    found = False
    for node in list(graph.nodes):
        if node.op == "call_module":
            skipped = isinstance(module.get_submodule(str(node.target)), _BYPASSED)
        else:
            skipped = node.op == "call_function" and operator_name(node.target) == "dropout"
        if skipped and isinstance(node.args[0], fx.Node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
            found = True
    return found


def _unshare(graph: fx.Graph, module: nn.Module, names: dict[str, str]) -> bool:
    """Give each further call of a module with weights a copy, at the path that is its name."""
    called: set[str] = set()
    found = False
    for node in graph.nodes:
        if node.op != "call_module":
            continue
        target = str(node.target)
        layer = module.get_submodule(target)
        if target in called and next(layer.parameters(), None) is not None:
            path = names[node.name]
            outer, _, last = path.rpartition(".")
            module.get_submodule(outer).add_module(last, copy.deepcopy(layer))
            node.target = path
            found = True
        called.add(target)
    return found
