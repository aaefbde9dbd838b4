"""What FX quantization is told of operators: the ones that it should know, and PyTorch's own.

What comes in: nothing. What goes out: a `BackendConfig`, and a correction of observers. It must not
know models.

PyTorch's configuration leaves functions such as SiLU and GELU out, and with them whatever moves
their results stays in float32. Here their results are quantized; their int8 form is dequantize,
float function, quantize.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx, nn
from torch.ao.quantization.observer import HistogramObserver
from torch.nn import functional

_FUNCTIONS = (
    *(nn.SiLU, functional.silu, nn.GELU, functional.gelu, nn.Mish, functional.mish),
    *(nn.Softplus, functional.softplus, nn.SELU, functional.selu, nn.CELU, functional.celu),
    *(nn.Softsign, functional.softsign, torch.exp, torch.sqrt, torch.rsqrt, torch.reciprocal),
    *(torch.abs, "exp", "sqrt", "rsqrt", "reciprocal", "abs"),
)
_PAIRS = (
    *(operator.sub, torch.sub, operator.truediv, torch.div, torch.maximum, torch.minimum),
    *(torch.bmm, "bmm", "matmul"),
)
_MOVES = (
    *(nn.ChannelShuffle, functional.channel_shuffle, nn.Upsample, nn.UpsamplingNearest2d),
    *(nn.Flatten, nn.ZeroPad2d, functional.pad, torch.permute, torch.reshape, "flatten"),
)
_SHARING = frozenset(
    {"max_pool1d", "max_pool2d", "flatten", "reshape", "view", "transpose", "permute"}
    | {"squeeze", "unsqueeze", "contiguous", "pixel_shuffle", "channel_shuffle", "interpolate"}
)
_SHARING_MODULES = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle),
    *(nn.Upsample, nn.UpsamplingNearest2d, nn.Flatten, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
)


def backend_config() -> Any:
    """PyTorch's configuration, and the operators above where it has none."""
    from torch.ao.quantization import quantize_fx as _  # noqa: F401  (it completes its package)
    from torch.ao.quantization.backend_config import (
        BackendPatternConfig,
        DTypeConfig,
        ObservationType,
        get_native_backend_config,
    )

    config = get_native_backend_config()
    known = {pattern.pattern for pattern in config.configs}
    levels = DTypeConfig(input_dtype=torch.quint8, output_dtype=torch.quint8)
    own = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
    shared = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
    for patterns, observation in (((*_FUNCTIONS, *_PAIRS), own), (_MOVES, shared)):
        for pattern in patterns:
            if pattern not in known:
                config.set_backend_pattern_config(
                    BackendPatternConfig(pattern)
                    .set_observation_type(observation)
                    .add_dtype_config(levels)
                )
    for known_pattern in config.configs:
        _take_signed(known_pattern)
    return config


def _take_signed(pattern: Any) -> None:
    """Let what takes quint8 activations take qint8 ones, but where the scale is fixed."""
    from torch.ao.quantization.backend_config import DTypeConfig

    for levels in list(pattern.dtype_configs):
        fixed = levels.output_dtype_with_constraints.scale_exact_match is not None
        dtypes = (levels.input_dtype, levels.output_dtype)
        if fixed or levels.is_dynamic or dtypes != (torch.quint8, torch.quint8):
            continue
        pattern.add_dtype_config(
            DTypeConfig(
                input_dtype=torch.qint8,
                output_dtype=torch.qint8,
                weight_dtype=levels.weight_dtype,
                bias_dtype=levels.bias_dtype,
            )
        )


def leave_tuples(mapping: Any, module: nn.Module) -> None:
    """Take modules with several results out of a `QConfigMapping`: observers take tensors only."""
    for name, layer in module.named_modules():
        several = isinstance(layer, nn.LSTMCell) or getattr(layer, "return_indices", False)
        if several or isinstance(layer, nn.GRUCell | nn.RNNCell):
            mapping.set_module_name(name, None)


def observe_alike(mapping: Any, activations: Any) -> None:
    """Let layers for which PyTorch has a `QConfig` of their own watch activations as all others do.

    Else a tensor that one of these and another layer read is quantized twice. Layers whose results
    have fixed levels keep them.
    """
    types = mapping.object_type_qconfigs
    for kind, config in types.items():
        if config is not None and type(config.activation()) is HistogramObserver:
            types[kind] = config._replace(activation=activations)


def share_observers(prepared: fx.GraphModule) -> None:
    """Give a tensor whose elements are only chosen from another the observer of that other.

    A later concat may have given the other one a new observer, and PyTorch's kernels keep the
    levels in any case.
    """
    changed = False
    for node in prepared.graph.nodes:
        if not _is_observer(prepared, node):
            continue
        moved = node.args[0]
        if not isinstance(moved, fx.Node) or not _keeps_levels(prepared, moved):
            continue
        source = moved.args[0]
        if isinstance(source, fx.Node) and _is_observer(prepared, source):
            changed = changed or node.target != source.target
            node.target = source.target
    if changed:
        prepared.recompile()


def observe_floats_only(prepared: fx.GraphModule, examples: tuple[torch.Tensor, ...]) -> None:
    """Take observers away from integers and truth values, such as an attention mask's.

    PyTorch observes every tensor that an operator which it can quantize gives, whatever its dtype.
    """
    observed = [node for node in prepared.graph.nodes if _is_observer(prepared, node)]
    if not observed:
        return
    values = _Dtypes(prepared, set(observed))
    values.run(*examples)
    others = [node for node in observed if node.args[0] in values.others]
    for node in others:
        node.replace_all_uses_with(node.args[0])
        prepared.graph.erase_node(node)
    if others:
        prepared.recompile()


class _Dtypes(fx.Interpreter):
    """Runs a graph past its observers, and finds tensors that are not float."""

    def __init__(self, module: fx.GraphModule, observers: set[fx.Node]) -> None:
        super().__init__(module)
        self.observers = observers
        self.others: set[fx.Node] = set()

    def run_node(self, n: fx.Node) -> Any:
        """The value of a node; an observer's is what it observes."""
        if n in self.observers:
            arguments: Any = self.map_nodes_to_values(n.args, n)
            return arguments[0]
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and not value.is_floating_point():
            self.others.add(n)
        return value


def _is_observer(module: fx.GraphModule, node: fx.Node) -> bool:
    from torch.ao.quantization.observer import ObserverBase

    called = node.op == "call_module"
    return called and isinstance(module.get_submodule(str(node.target)), ObserverBase)


def _keeps_levels(module: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return isinstance(module.get_submodule(str(node.target)), _SHARING_MODULES)
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.op in ("call_function", "call_method") and name in _SHARING
