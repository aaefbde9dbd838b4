"""Convolutions and matrix products, and the bias that follows them.

What comes in: a node with constant weights. What goes out: a module of PyTorch.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import convolution, filled, linear
from accelsim.importer.floats.onnx_operators.windows import geometry

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode


def conv(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Conv of one or two axes."""
    weight = graph.constant(node.input(1))
    if weight is None or weight.ndim not in (3, 4):
        raise graph.wrong(node, "has weights that are no constant of 3 or 4 axes")
    rank = weight.ndim - 2
    bias = _bias(graph, node)
    if tuple(node.attributes.get("kernel_shape", weight.shape[2:])) != weight.shape[2:]:
        raise graph.wrong(node, f"has a kernel_shape that is not {weight.shape[2:]}")
    if bias is None:
        ones = (1,) * rank
        out = weight.shape[0]
        bias = graph.bias_behind(node, ((out, *ones), (1, out, *ones)))
    window = geometry(graph, node, weight.shape[2:])
    x = graph.node(node.input(0))
    padding: tuple[int, ...] = (0,) * rank
    if window.before == window.after:
        padding = window.before
    elif rank == 2:
        x = graph.net.padded(node.name, x, (*window.before, *window.after))
    else:
        sides = [window.before[0], window.after[0]]
        x = graph.net.call(f"{node.name}/pad", nn.functional.pad, x, sides)
    groups = int(node.attributes.get("group", 1))
    layer = convolution(weight, bias, window.stride, window.dilation, groups, padding)
    return graph.net.module(node.name, layer, x)


def _bias(graph: OnnxGraph, node: OnnxNode) -> np.ndarray | None:
    """The constant bias of a convolution; None where it is left out."""
    if not node.input(2):
        return None
    bias = graph.constant(node.input(2))
    if bias is None:
        raise graph.wrong(node, "computes its bias")
    return bias


def conv_transpose(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """ConvTranspose of one or two axes; what PyTorch's padding does not cut is sliced off."""
    weight = graph.constant(node.input(1))
    if weight is None or weight.ndim not in (3, 4):
        raise graph.wrong(node, "has weights that are no constant of 3 or 4 axes")
    named, rank = node.attributes, weight.ndim - 2
    ones, zeros = (1,) * rank, (0,) * rank
    stride, dilation = (tuple(named.get(key, ones)) for key in ("strides", "dilations"))
    added = tuple(named.get("output_padding", zeros))
    before, after, added = _cuts(graph, node, weight.shape[2:], stride, dilation, added)
    padding = tuple(min(one, other) for one, other in zip(before, after, strict=True))
    groups = int(named.get("group", 1))
    bias = _bias(graph, node)
    kind: Any = nn.ConvTranspose1d if rank == 1 else nn.ConvTranspose2d
    layer = kind(
        weight.shape[0],
        weight.shape[1] * groups,
        weight.shape[2:],
        stride,
        padding,
        added,
        groups,
        bias is not None,
        dilation,
    )
    made, x = filled(layer, weight, bias), graph.node(node.input(0))
    if before == after:
        return graph.net.module(node.name, made, x)
    whole = graph.net.module(f"{node.name}/whole", made, x)
    sides = zip(before, after, padding, strict=True)
    kept = [slice(low - cut, cut - high if high > cut else None) for low, high, cut in sides]
    window = (slice(None), slice(None), *kept)
    return graph.net.call(node.name, operator.getitem, whole, window)


def _cuts(
    graph: OnnxGraph,
    node: OnnxNode,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    added: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """What is cut from both ends of each axis, and what is added at the far one."""
    named, rank = node.attributes, len(kernel)
    mode, sizes = str(named.get("auto_pad", "NOTSET")), graph.shape(node.input(0))[2:]
    if "output_shape" in named:
        wanted = tuple(named["output_shape"])[-rank:]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(size * one for size, one in zip(sizes, stride, strict=True))
    else:
        pads = tuple(named.get("pads", (0,) * (2 * rank))) if mode == "NOTSET" else (0,) * 2 * rank
        return pads[:rank], pads[rank:], added
    axes = zip(sizes, kernel, stride, dilation, added, wanted, strict=True)
    totals = [(n - 1) * s + a + (k - 1) * d + 1 - w for n, k, s, d, a, w in axes]
    more = tuple(a + max(0, -total) for a, total in zip(added, totals, strict=True))
    small = tuple(max(0, total) // 2 for total in totals)
    large = tuple(max(0, total) - max(0, total) // 2 for total in totals)
    return (small, large, more) if mode == "SAME_UPPER" else (large, small, more)


def gemm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Gemm: a linear layer where weights and bias are constants, else a product and a sum."""
    named = node.attributes
    weight, alpha, beta = (
        graph.constant(node.input(1)),
        named.get("alpha", 1.0),
        named.get("beta", 1.0),
    )
    bias = graph.constant(node.input(2)) if node.input(2) else None
    if weight is None:
        return _computed_gemm(graph, node, float(alpha), float(beta))
    turned = weight if named.get("transB", 0) else weight.T
    row = (turned.shape[0],)
    fits = not node.input(2) or (
        bias is not None and (bias.size == 1 or bias.shape in (row, (1, *row)))
    )
    if not fits or named.get("transA", 0):
        return _computed_gemm(graph, node, float(alpha), float(beta))
    scaled = turned * np.float32(alpha)
    if bias is not None:
        bias = np.broadcast_to(bias.reshape(-1), row) * np.float32(beta)
    return graph.net.module(node.name, linear(scaled, bias), graph.node(node.input(0)))


def _computed_gemm(graph: OnnxGraph, node: OnnxNode, alpha: float, beta: float) -> fx.Node:
    """alpha · A · B + beta · C, of what the model computes."""
    net, name = graph.net, node.name
    a, b = (graph.node(node.input(place)) for place in (0, 1))
    if node.attributes.get("transA", 0):
        a = net.call(f"{name}/turn_a", torch.permute, a, (1, 0))
    if node.attributes.get("transB", 0):
        b = net.call(f"{name}/turn_b", torch.permute, b, (1, 0))
    added = bool(node.input(2))
    plain = alpha == 1.0
    product = net.call(name if plain and not added else f"{name}/product", torch.matmul, a, b)
    if not plain:
        product = net.call(f"{name}/alpha" if added else name, operator.mul, product, alpha)
    if not added:
        return product
    c = graph.node(node.input(2))
    if beta != 1.0:
        c = net.call(f"{name}/beta", operator.mul, c, beta)
    return net.call(name, operator.add, product, c)


def matmul(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """MatMul: a linear layer where the second operand is a constant matrix."""
    weight = graph.constant(node.input(1))
    a = graph.node(node.input(0))
    if weight is None or weight.ndim != 2 or len(graph.shape(node.input(0))) < 2:
        return graph.net.call(node.name, torch.matmul, a, graph.node(node.input(1)))
    out = weight.shape[1]
    rank = len(graph.shape(node.input(0)))
    bias = graph.bias_behind(node, tuple((*(1,) * n, out) for n in range(rank)))
    return graph.net.module(node.name, linear(np.ascontiguousarray(weight.T), bias), a)


RULES: dict[str, Any] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Gemm": gemm,
    "MatMul": matmul,
}
