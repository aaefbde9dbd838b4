"""Einsum: products of two tensors as matrix products, everything else as PyTorch's own function.

What comes in: a node with its equation. What goes out: functions of PyTorch, so that a product
whose letters are batches, rows, columns and one sum reaches the NPU's matrix engine.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx

from accelsim.importer.floats.network import linear

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode


def einsum(graph: OnnxGraph, node: OnnxNode) -> fx.Node:
    """Einsum."""
    equation = str(node.attributes["equation"]).replace(" ", "")
    parts, arrow, result = equation.partition("->")
    letters, names = parts.split(","), list(node.inputs)
    plain = all(len(set(one)) == len(one) for one in letters) and "." not in equation
    if len(letters) != 2 or not plain or not arrow or not _is_product(letters, result):
        operands = [graph.node(name) for name in names]
        return graph.net.call(node.name, torch.einsum, equation, *operands)
    if graph.constant(names[0]) is not None:  # weights come last
        letters, names = letters[::-1], names[::-1]
    return _product(graph, node, letters, result, names)


def _is_product(letters: list[str], result: str) -> bool:
    """Whether letters of one operand alone are in the result, and one sum is over both."""
    a, b = (set(one) for one in letters)
    summed = (a & b) - set(result)
    return a ^ b <= set(result) and bool(summed)


def _product(
    graph: OnnxGraph, node: OnnxNode, letters: list[str], result: str, names: list[str]
) -> fx.Node:
    sizes: dict[str, int] = {}
    for one, name in zip(letters, names, strict=True):
        sizes |= dict(zip(one, graph.shape(name), strict=True))
    a, b = letters
    batch = [one for one in result if one in a and one in b]
    rows = [one for one in result if one in a and one not in b]
    columns = [one for one in result if one in b and one not in a]
    summed = [one for one in a if one in b and one not in result]
    given = [*batch, *rows, *columns]
    shape = [sizes[one] for one in given]
    order = tuple(given.index(one) for one in result)
    turns, splits = order != tuple(range(len(order))), len(rows) != 1 or len(columns) != 1
    name = node.name if not turns and not splits else f"{node.name}/product"
    left = _arranged(graph, f"{node.name}/a", graph.node(names[0]), a, (batch, rows, summed), sizes)
    weight = graph.constant(names[1])
    if weight is not None and not batch:
        turned = weight.transpose([b.index(one) for one in (*columns, *summed)])
        matrix = turned.reshape(prod(sizes[one] for one in columns), -1)
        product = graph.net.module(name, linear(np.ascontiguousarray(matrix), None), left)
    else:
        groups = (batch, summed, columns)
        right = _arranged(graph, f"{node.name}/b", graph.node(names[1]), b, groups, sizes)
        product = graph.net.call(name, torch.matmul, left, right)
    if splits:
        name = f"{node.name}/split" if turns else node.name
        product = graph.net.call(name, torch.reshape, product, shape)
    return graph.net.call(node.name, torch.permute, product, order) if turns else product


def _arranged(
    graph: OnnxGraph,
    name: str,
    x: fx.Node,
    letters: str,
    groups: tuple[list[str], list[str], list[str]],
    sizes: dict[str, int],
) -> fx.Node:
    """Axes in the order of the groups; those of the two last groups are one each."""
    batch, first, second = groups
    order = tuple(letters.index(one) for group in groups for one in group)
    if order != tuple(range(len(order))):
        x = graph.net.call(f"{name}/permute", torch.permute, x, order)
    if len(first) == len(second) == 1:
        return x
    shape = [
        *(sizes[one] for one in batch),
        *(prod(sizes[k] for k in one) for one in (first, second)),
    ]
    return graph.net.call(f"{name}/reshape", torch.reshape, x, shape)


RULES: dict[str, Any] = {"Einsum": einsum}
