"""Convolutions and matrix products, and the bias that follows them.

What comes in: a node with constant weights. What goes out: a module of PyTorch.
"""

from __future__ import annotations

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
    """ConvTranspose of two axes with pads given as numbers."""
    weight = graph.constant(node.input(1))
    if weight is None or weight.ndim != 4:
        raise graph.wrong(node, "has weights that are no constant of 4 axes")
    named = node.attributes
    if "output_shape" in named or named.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise graph.wrong(node, "pads by its output's shape")
    pads = tuple(named.get("pads", (0, 0, 0, 0)))
    if pads[:2] != pads[2:]:
        raise graph.wrong(node, f"has the pads {pads} that differ between two sides")
    groups = int(named.get("group", 1))
    bias = _bias(graph, node)
    layer = nn.ConvTranspose2d(
        weight.shape[0],
        weight.shape[1] * groups,
        weight.shape[2:],
        tuple(named.get("strides", (1, 1))),
        pads[:2],
        tuple(named.get("output_padding", (0, 0))),
        groups,
        bias is not None,
        tuple(named.get("dilations", (1, 1))),
    )
    return graph.net.module(node.name, filled(layer, weight, bias), graph.node(node.input(0)))


def gemm(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Gemm with constant weights, without transposition of its input."""
    named = node.attributes
    weight = graph.constant(node.input(1))
    if weight is None or named.get("transA", 0):
        raise graph.wrong(node, "has computed weights or a transposed input")
    turned = weight if named.get("transB", 0) else weight.T
    bias = graph.constant(node.input(2)) if node.input(2) else None
    fits = bias is not None and (
        bias.size == 1 or bias.shape in ((turned.shape[0],), (1, turned.shape[0]))
    )
    if node.input(2) and not fits:
        raise graph.wrong(node, "has a bias that is no constant of one row")
    scaled = turned * np.float32(named.get("alpha", 1.0))
    if bias is not None:
        bias = np.broadcast_to(bias.reshape(-1), turned.shape[:1])
        bias = bias * np.float32(named.get("beta", 1.0))
    return graph.net.module(node.name, linear(scaled, bias), graph.node(node.input(0)))


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
