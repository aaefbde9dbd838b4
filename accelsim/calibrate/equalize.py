"""Cross-layer equalisation: neighbouring layers share their ranges of weights channel by channel.

What comes in: a float module. What goes out: a copy that computes the same, whose weights lose less
when one scale has to do for all channels. It must not know observers.

Where only operators that commute with a positive factor stand between two layers (ReLU, pools,
flatten), channel c of the first can be divided by s and the weights of the second that read c
multiplied by it. s = sqrt(range of c in the first / range of c in the second) makes both ranges
equal: Nagel et al., "Data-free quantization through weight equalization and bias correction"
(2019), section 4.1. Here s is rounded to a power of two: every product and sum of the float network
is then the same number, exponents apart, so its outputs do not change in any bit. Batch norm takes
the factor where there is one. PyTorch's own `_equalize` knows neither batch norm nor groups.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from accelsim.quantize.float_graph import float_graph
from accelsim.quantize.names import operator_name

_LAYERS = (nn.Conv2d, nn.Conv1d, nn.Linear)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_PASSING = (
    *(nn.ReLU, nn.LeakyReLU, nn.Identity, nn.Dropout, nn.Dropout2d),
    *(nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d),
)
_PASSING_NAMES = frozenset(
    {"relu", "leaky_relu", "dropout", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"}
)
_SWEEPS = 40


@dataclass(frozen=True, slots=True)
class Pair:
    """Two layers between which a factor for each channel can move."""

    first: str  # paths of the modules
    norm: str | None  # batch norm behind the first
    second: str


def equalized(module: nn.Module, model: str) -> tuple[nn.Module, tuple[Pair, ...]]:
    """A copy of a module in eval mode, and the pairs whose factors are not all 1.

    Raises ModelError where the module cannot be traced.
    """
    result = copy.deepcopy(module).eval()
    pairs = find_pairs(result, model)
    moved: set[Pair] = set()
    with torch.no_grad():
        for _ in range(_SWEEPS):
            changed = [pair for pair in pairs if _equalize(result, pair)]
            moved.update(changed)
            if not changed:
                break
    return result, tuple(pair for pair in pairs if pair in moved)


def find_pairs(module: nn.Module, model: str) -> tuple[Pair, ...]:
    """Pairs of layers, each used once, with nothing between them that a factor cannot pass."""
    copied: Any = copy.deepcopy(module)
    for path, layer in copied.named_modules():
        layer.own_path = path  # which copies for further calls of a layer have, too
    repaired, graph, _ = float_graph(copied, model)
    modules = dict(module.named_modules())
    called = [str(node.target) for node in graph.nodes if node.op == "call_module"]
    uses = Counter(getattr(repaired.get_submodule(one), "own_path", one) for one in called)
    found = []
    for node in graph.nodes:
        path = _layer_path(node, modules, uses)
        if path is None:
            continue
        norm, end = None, node
        while True:
            if len(end.users) != 1:
                break
            user = next(iter(end.users))
            target = str(user.target)
            if user.op == "call_module" and isinstance(modules.get(target), _NORMS):
                if norm is not None or end is not node or uses[target] > 1:
                    break
                norm, end = target, user
            elif _passes(user, modules, modules[path]):
                end = user
            else:
                second = _layer_path(user, modules, uses)
                if second is not None:
                    found.append(Pair(path, norm, second))
                break
    return tuple(found)


def _layer_path(
    node: fx.Node, modules: Mapping[str, nn.Module], uses: Mapping[str, int]
) -> str | None:
    """Path of a layer with weights that is called once."""
    path = str(node.target)
    known = node.op == "call_module" and isinstance(modules.get(path), _LAYERS)
    return path if known and uses[path] == 1 else None


def _passes(node: fx.Node, modules: dict[str, nn.Module], first: nn.Module) -> bool:
    """Whether a positive factor of each channel of `first` passes the node."""
    if node.op == "call_module":
        layer = modules.get(str(node.target))
        if isinstance(layer, nn.Flatten):
            return layer.start_dim == 1 and not isinstance(first, nn.Linear)
        return isinstance(layer, _PASSING)
    name = operator_name(node.target) if node.op in ("call_function", "call_method") else ""
    if name == "flatten":
        start = node.kwargs.get("start_dim", node.args[1] if len(node.args) > 1 else 0)
        return bool(start == 1) and not isinstance(first, nn.Linear)
    return name in _PASSING_NAMES


def _equalize(module: nn.Module, pair: Pair) -> bool:
    """Move factors between two layers; whether one of them was not 1."""
    first: Any = module.get_submodule(pair.first)
    second: Any = module.get_submodule(pair.second)
    norm: Any = None if pair.norm is None else module.get_submodule(pair.norm)
    if norm is not None and norm.weight is None:
        return False
    own = first.weight.detach().flatten(1).abs().amax(1)
    if norm is not None:
        own = own * (norm.weight / torch.sqrt(norm.running_var + norm.eps)).abs()
    reading = _reading(second, len(own))
    if reading is None:
        return False
    ratio = torch.where((own > 0) & (reading > 0), own / reading.clamp_min(1e-30), 1.0)
    factor = torch.exp2(torch.round(torch.log2(ratio) / 2))
    if bool((factor == 1).all()):
        return False
    scaled = first if norm is None else norm
    inverse = 1 / factor
    shape = (-1, *[1] * (scaled.weight.ndim - 1))
    scaled.weight.mul_(inverse.reshape(shape))
    if scaled.bias is not None:
        scaled.bias.mul_(inverse)
    _columns(second, factor)
    return True


def _reading(second: Any, channels: int) -> torch.Tensor | None:
    """Largest weight that reads each channel, (channels,); None where they do not fit."""
    weight: torch.Tensor = second.weight.detach().abs()
    if isinstance(second, nn.Linear):
        if weight.shape[1] % channels:
            return None
        return weight.reshape(weight.shape[0], channels, -1).amax((0, 2))
    if weight.shape[1] * second.groups != channels:
        return None
    outputs = weight.shape[0] // second.groups
    split = weight.reshape(second.groups, outputs, weight.shape[1], -1)
    return split.amax((1, 3)).reshape(-1)


def _columns(second: Any, factor: torch.Tensor) -> None:
    """Multiply the weights that read each channel."""
    weight = second.weight
    if isinstance(second, nn.Linear):
        repeated = factor.repeat_interleave(weight.shape[1] // len(factor))
        weight.mul_(repeated[None, :])
        return
    outputs = weight.shape[0] // second.groups
    by_group = factor.reshape(second.groups, 1, weight.shape[1])
    rows = by_group.expand(-1, outputs, -1).reshape(weight.shape[0], weight.shape[1])
    weight.mul_(rows.reshape(*rows.shape, *[1] * (weight.ndim - 2)))
