"""Pooling, and the windows of convolutions and pools.

What comes in: a node with its attributes. What goes out: strides, pads and dilations as numbers,
and modules of PyTorch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import fx, nn

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


def _uneven(graph: OnnxGraph, node: OnnxNode, kernel: Sequence[int], window: Window) -> bool:
    """Whether sides are padded unequally; no window may begin behind the tensor itself."""
    uneven = window.before != window.after
    if uneven and node.attributes.get("ceil_mode", 0):
        size = graph.shape(node.input(0))[2:]
        axes = zip(size, kernel, *dataclasses.astuple(window), strict=True)
        for n, k, stride, dilation, before, after in axes:
            steps = -(-(n + before + after - (k - 1) * dilation - 1) // stride)
            if steps * stride >= n + before:
                raise graph.wrong(node, "has a window that begins in the padding")
    return uneven


def _checked(graph: OnnxGraph, node: OnnxNode) -> tuple[tuple[int, ...], Window]:
    kernel = tuple(node.attributes["kernel_shape"])
    if len(kernel) not in (1, 2):
        raise graph.wrong(node, f"has a window of {len(kernel)} axes")
    return kernel, geometry(graph, node, kernel)


def max_pool(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """MaxPool; unequal sides are padded before, with what no maximum is."""
    kernel, window = _checked(graph, node)
    if len(node.outputs) > 1 and node.outputs[1]:
        raise graph.wrong(node, "gives the places of maxima")
    x, padding = graph.node(node.input(0)), window.before
    if _uneven(graph, node, kernel, window):
        if len(kernel) == 1:
            raise graph.wrong(node, "pads two sides unequally")
        pads = (*window.before, *window.after)
        x = graph.net.padded(node.name, x, pads, value=float("-inf"))
        padding = (0, 0)
    kind: Any = nn.MaxPool1d if len(kernel) == 1 else nn.MaxPool2d
    ceil = bool(node.attributes.get("ceil_mode", 0))
    layer = kind(kernel, window.stride, padding, window.dilation, ceil_mode=ceil)
    return graph.net.module(node.name, layer, x)


def average_pool(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """AveragePool with equal sides, or with zeros that count."""
    kernel, window = _checked(graph, node)
    counted = bool(node.attributes.get("count_include_pad", 0))
    x, padding = graph.node(node.input(0)), window.before
    if any(one != 1 for one in window.dilation):
        raise graph.wrong(node, f"has the dilation {window.dilation}")
    if _uneven(graph, node, kernel, window):
        if not counted or len(kernel) == 1:
            raise graph.wrong(node, "pads two sides unequally")
        x = graph.net.padded(node.name, x, (*window.before, *window.after))
        padding = (0, 0)
    kind: Any = nn.AvgPool1d if len(kernel) == 1 else nn.AvgPool2d
    ceil = bool(node.attributes.get("ceil_mode", 0))
    layer = kind(kernel, window.stride, padding, ceil, counted or not any(padding))
    return graph.net.module(node.name, layer, x)


def global_average(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GlobalAveragePool."""
    rank = len(graph.shape(node.input(0))) - 2
    kind: Any = nn.AdaptiveAvgPool1d if rank == 1 else nn.AdaptiveAvgPool2d
    return graph.net.module(node.name, kind(1), graph.node(node.input(0)))


def global_max(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """GlobalMaxPool."""
    size: Any = graph.shape(node.input(0))[2:]
    kind: Any = nn.MaxPool1d if len(size) == 1 else nn.MaxPool2d
    return graph.net.module(node.name, kind(size), graph.node(node.input(0)))


RULES: dict[str, Any] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average,
    "GlobalMaxPool": global_max,
}
