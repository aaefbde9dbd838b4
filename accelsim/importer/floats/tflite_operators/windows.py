"""Convolutions, linear layers and pools.

What comes in: an operator with constant weights. What goes out: modules of PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import convolution, filled, linear

if TYPE_CHECKING:
    from accelsim.importer.floats.tflite_graph import TfliteGraph
    from accelsim.importer.tflite.model import TfliteOperator

SAME = 0


def _pair(operator: TfliteOperator, name: str) -> tuple[int, int]:
    high, wide = (int(str(operator.options.get(f"{name}_{axis}", 1))) for axis in "hw")
    return high, wide


def pads(
    operator: TfliteOperator,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int] = (1, 1),
) -> tuple[int, int, int, int]:
    """(top, left, bottom, right), the odd one last."""
    if operator.options["padding"] != SAME:
        return 0, 0, 0, 0
    axes = zip(size, kernel, stride, dilation, strict=True)
    totals = [max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in axes]
    high, wide = totals
    return high // 2, wide // 2, high - high // 2, wide - wide // 2


def _weighted(graph: TfliteGraph, operator: TfliteOperator, depthwise: bool) -> None:
    stored, bias = graph.constant(operator, 1), graph.constant(operator, 2)
    if stored is None:
        raise graph.wrong(operator, "has no weights")
    weight = stored.transpose(3, 0, 1, 2) if depthwise else stored.transpose(0, 3, 1, 2)
    source = operator.inputs[0]
    channels = graph.shape(source)[3]
    stride, dilation = _pair(operator, "stride"), _pair(operator, "dilation")
    around = pads(operator, graph.shape(source)[1:3], weight.shape[2:], stride, dilation)
    x, padding = graph.image(source), around[:2]
    if around[:2] != around[2:]:
        x, padding = graph.net.padded(operator.name, x, around), (0, 0)
    groups = channels if depthwise else channels // weight.shape[1]
    weight = np.ascontiguousarray(weight)
    layer = convolution(weight, bias, stride, dilation, groups, padding)
    graph.put(operator, graph.net.module(operator.name, layer, x), image=True)


def conv(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """CONV_2D, grouped where its weights have fewer channels than its input."""
    _weighted(graph, operator, depthwise=False)


def depthwise(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """DEPTHWISE_CONV_2D."""
    _weighted(graph, operator, depthwise=True)


def conv_transpose(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """TRANSPOSE_CONV: inputs are the output's shape, weights, the image and a bias."""
    weight, bias = graph.constant(operator, 1), graph.constant(operator, 3)
    source = operator.inputs[2]
    if weight is None:
        raise graph.wrong(operator, "has no weights")
    kernel, stride = weight.shape[1:3], _pair(operator, "stride")
    out = graph.shape(operator.outputs[0])[1:3]
    before = [0, 0]
    if operator.options["padding"] == SAME:
        size = graph.shape(source)[1:3]
        axes = zip(size, kernel, stride, out, strict=True)
        before = [max(0, (n - 1) * s + k - o) // 2 for n, k, s, o in axes]
    channels = weight.shape[3], weight.shape[0]
    layer = nn.ConvTranspose2d(*channels, kernel, stride, bias=bias is not None)
    turned = np.ascontiguousarray(weight.transpose(3, 0, 1, 2))
    whole = graph.net.module(operator.name, filled(layer, turned, bias), graph.image(source))
    if tuple(graph.shape(source)[1:3]) != out or any(before):
        high, wide = (slice(b, b + o) for b, o in zip(before, out, strict=True))
        chosen = (slice(None), slice(None), high, wide)
        whole = graph.net.call(f"{operator.name}/crop", getitem, whole, chosen)
    graph.put(operator, whole, image=True)


def dense(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """FULLY_CONNECTED of rows of the input."""
    weight, bias = graph.constant(operator, 1), graph.constant(operator, 2)
    if weight is None or operator.options.get("format", 0):
        raise graph.wrong(operator, "has no weights, or shuffled ones")
    source, target = operator.inputs[0], operator.outputs[0]
    x = graph.plain(source)
    rows = (*graph.shape(target)[:-1], weight.shape[1])
    if graph.shape(source) != rows:
        x = graph.net.call(f"{operator.name}/reshape", torch.reshape, x, rows)
    graph.put(operator, graph.net.module(operator.name, linear(weight, bias), x))


def _pool(graph: TfliteGraph, operator: TfliteOperator, maximum: bool) -> fx.Node:
    kernel, stride = _pair(operator, "kernel"), _pair(operator, "stride")
    around = pads(operator, graph.shape(operator.inputs[0])[1:3], kernel, stride)
    x = graph.image(operator.inputs[0])
    if maximum:
        padding = around[:2]
        if around[:2] != around[2:]:
            x = graph.net.padded(operator.name, x, around, value=float("-inf"))
            padding = (0, 0)
        return graph.net.module(operator.name, nn.MaxPool2d(kernel, stride, padding), x)
    if around[:2] != around[2:]:
        raise graph.wrong(operator, "averages over sides that are padded unequally")
    layer = nn.AvgPool2d(kernel, stride, around[:2], count_include_pad=not any(around))
    return graph.net.module(operator.name, layer, x)


def max_pool(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """MAX_POOL_2D."""
    graph.put(operator, _pool(graph, operator, maximum=True), image=True)


def average_pool(graph: TfliteGraph, operator: TfliteOperator) -> None:
    """AVERAGE_POOL_2D; padding is not counted."""
    graph.put(operator, _pool(graph, operator, maximum=False), image=True)


RULES: dict[str, Any] = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "TRANSPOSE_CONV": conv_transpose,
    "FULLY_CONNECTED": dense,
    "MAX_POOL_2D": max_pool,
    "AVERAGE_POOL_2D": average_pool,
}
