"""Pooling, and the windows of convolutions and pools.

What comes in: a node with its attributes. What goes out: strides, pads and dilations as numbers,
and modules of PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import convolution

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode


@dataclass(frozen=True, slots=True)
class Window:
    """Numbers of each axis."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def geometry(graph: OnnxGraph, node: OnnxNode, kernel: Sequence[int]) -> Window:
    """How a window of `kernel` moves over the node's first input."""
    named, rank = node.attributes, len(kernel)
    stride = tuple(named.get("strides", (1,) * rank))
    dilation = tuple(named.get("dilations", (1,) * rank))
    pads = tuple(named.get("pads", (0,) * (2 * rank)))
    before, after = pads[:rank], pads[rank:]
    mode = named.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        size = graph.shape(node.input(0))[2:]
        axes = zip(size, kernel, stride, dilation, strict=True)
        totals = [max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in axes]
        small, large = [n // 2 for n in totals], [n - n // 2 for n in totals]
        upper = mode == "SAME_UPPER"
        before, after = tuple(small if upper else large), tuple(large if upper else small)
    elif mode == "VALID":
        before, after = (0,) * rank, (0,) * rank
    return Window(stride, dilation, before, after)


def _checked(graph: OnnxGraph, node: OnnxNode) -> tuple[tuple[int, ...], Window]:
    kernel = tuple(node.attributes["kernel_shape"])
    if len(kernel) not in (1, 2):
        raise graph.wrong(node, f"has a window of {len(kernel)} axes")
    return kernel, geometry(graph, node, kernel)


def _plain(graph: OnnxGraph, node: OnnxNode, kernel: Sequence[int], window: Window) -> bool:
    """Whether PyTorch's own padding does: equal sides, not over half a window."""
    halves = all(2 * pad <= k for pad, k in zip(window.before, kernel, strict=True))
    ceil = bool(node.attributes.get("ceil_mode", 0))
    same_end = "auto_pad" not in node.attributes or not ceil
    return window.before == window.after and halves and same_end


def _ends(graph: OnnxGraph, node: OnnxNode, kernel: Sequence[int], window: Window) -> list[int]:
    """How far behind the tensor the last window of each axis reaches; negative where it does not.

    Raises ModelError for a window that begins behind the tensor itself.
    """
    sizes, results = graph.shape(node.input(0))[2:], graph.shape(node.outputs[0])[2:]
    axes = zip(sizes, results, kernel, window.stride, window.dilation, window.before, strict=True)
    found = []
    for size, count, k, stride, dilation, before in axes:
        first = (count - 1) * stride - before
        if first >= size:
            raise graph.wrong(node, "has a window that begins in the padding")
        found.append(first + (k - 1) * dilation + 1 - size)
    return found


def _padded(
    graph: OnnxGraph, node: OnnxNode, window: Window, ends: Sequence[int], value: float
) -> fx.Node:
    """The node's input padded to what its windows cover."""
    sides = [
        side
        for before, end in zip(reversed(window.before), reversed(ends), strict=True)
        for side in (before, max(end, 0))
    ]
    x = graph.node(node.input(0))
    if not any(sides):
        return x
    return graph.net.call(f"{node.name}/pad", nn.functional.pad, x, sides, value=value)


def max_pool(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """MaxPool; where PyTorch cannot pad, the input is padded with what no maximum is."""
    kernel, window = _checked(graph, node)
    if len(node.outputs) > 1 and graph.uses[node.outputs[1]]:
        raise graph.wrong(node, "gives the places of maxima")
    x, padding = graph.node(node.input(0)), window.before
    kind: Any = nn.MaxPool1d if len(kernel) == 1 else nn.MaxPool2d
    ceil = bool(node.attributes.get("ceil_mode", 0))
    if not _plain(graph, node, kernel, window):
        ends = _ends(graph, node, kernel, window)
        x, ceil = _padded(graph, node, window, ends, float("-inf")), False
        padding = (0,) * len(kernel)
    layer = kind(kernel, window.stride, padding, window.dilation, ceil_mode=ceil)
    return graph.net.module(node.name, layer, x)


def average_pool(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """AveragePool; where PyTorch cannot count as ONNX does, the counts are constants."""
    kernel, window = _checked(graph, node)
    counted = bool(node.attributes.get("count_include_pad", 0))
    ceil = bool(node.attributes.get("ceil_mode", 0))
    dense = all(one == 1 for one in window.dilation)
    if dense and _plain(graph, node, kernel, window):
        kind: Any = nn.AvgPool1d if len(kernel) == 1 else nn.AvgPool2d
        padding = window.before
        layer = kind(kernel, window.stride, padding, ceil, counted or not any(padding))
        return graph.net.module(node.name, layer, graph.node(node.input(0)))
    shares = _shares(graph, node, kernel, window, counted)
    if np.all(shares == 1):
        return _sums(graph, node, node.name, kernel, window, 1 / prod(kernel))
    mean = _sums(graph, node, f"{node.name}/average", kernel, window, 1 / prod(kernel))
    return graph.net.call(node.name, operator.mul, mean, graph.net.constant(shares))


def _shares(
    graph: OnnxGraph, node: OnnxNode, kernel: Sequence[int], window: Window, counted: bool
) -> np.ndarray:
    """float32 (1, 1, outputs…): a window's elements over those of them that count."""
    sizes, results = graph.shape(node.input(0))[2:], graph.shape(node.outputs[0])[2:]
    total = np.ones((1, 1, *(1,) * len(kernel)))
    for axis, (size, count, k) in enumerate(zip(sizes, results, kernel, strict=True)):
        starts = np.arange(count) * window.stride[axis] - window.before[axis]
        taps = starts[:, None] + np.arange(k) * window.dilation[axis]
        low, high = (-window.before[axis], window.after[axis]) if counted else (0, 0)
        inside = ((taps >= low) & (taps < size + high)).sum(1)
        shape = [-1 if place == axis + 2 else 1 for place in range(len(kernel) + 2)]
        total = total * (k / inside).reshape(shape)
    return total.astype(np.float32)


def _sums(
    graph: OnnxGraph,
    node: OnnxNode,
    name: str,
    kernel: Sequence[int],
    window: Window,
    factor: float,
    x: fx.Node | None = None,
) -> fx.Node:
    """Sums over windows times a factor, by an average or a depthwise convolution."""
    ends = _ends(graph, node, kernel, window)
    if x is None:
        x = _padded(graph, node, window, ends, 0.0)
    if all(one == 1 for one in window.dilation) and factor == 1 / prod(kernel):
        kind: Any = nn.AvgPool1d if len(kernel) == 1 else nn.AvgPool2d
        return graph.net.module(name, kind(kernel, window.stride), x)
    channels = graph.shape(node.input(0))[1]
    weight = np.full((channels, 1, *kernel), factor, np.float32)
    layer = convolution(weight, None, window.stride, window.dilation, channels, (0,) * len(kernel))
    return graph.net.module(name, layer, x)


def norm_pool(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """LpPool: the root of a sum of powers over each window."""
    kernel, window = _checked(graph, node)
    x = _padded(graph, node, window, _ends(graph, node, kernel, window), 0.0)
    return _rooted(
        graph, node, x, lambda name, each: _sums(graph, node, name, kernel, window, 1.0, each)
    )


def global_norm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GlobalLpPool."""
    axes = tuple(range(2, len(graph.shape(node.input(0)))))
    return _rooted(
        graph,
        node,
        graph.node(node.input(0)),
        lambda name, each: graph.net.call(name, torch.sum, each, dim=axes, keepdim=True),
    )


def _rooted(
    graph: OnnxGraph, node: OnnxNode, x: fx.Node, add: Callable[[str, fx.Node], fx.Node]
) -> fx.Node:
    """(Σ |x|^p)^(1/p), where `add` adds up under a name."""
    order, net, name = int(node.attributes.get("p", 2)), graph.net, node.name
    if order == 2:
        total = add(f"{name}/sum", net.call(f"{name}/square", operator.mul, x, x))
        return net.call(name, torch.sqrt, total)
    each = net.call(f"{name}/abs", torch.abs, x)
    if order == 1:
        return add(name, each)
    total = add(f"{name}/sum", net.call(f"{name}/power", torch.pow, each, float(order)))
    return net.call(name, torch.pow, total, 1.0 / order)


def global_average(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GlobalAveragePool."""
    rank = len(graph.shape(node.input(0))) - 2
    kinds: dict[int, Any] = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d}
    if rank not in kinds:
        raise graph.wrong(node, f"has a window of {rank} axes")
    return graph.net.module(node.name, kinds[rank](1), graph.node(node.input(0)))


def global_max(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GlobalMaxPool."""
    size: Any = graph.shape(node.input(0))[2:]
    kinds: dict[int, Any] = {1: nn.MaxPool1d, 2: nn.MaxPool2d}
    if len(size) not in kinds:
        raise graph.wrong(node, f"has a window of {len(size)} axes")
    return graph.net.module(node.name, kinds[len(size)](size), graph.node(node.input(0)))


RULES: dict[str, Any] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": norm_pool,
    "GlobalAveragePool": global_average,
    "GlobalMaxPool": global_max,
    "GlobalLpPool": global_norm,
}
