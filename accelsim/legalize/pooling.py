"""Pooling islands: max, average, adaptive average and spatial mean.

What comes in: the last float operator of an island and a `Frame` with its output. What goes out: an
`IntegerOp` with a `Pool2d`, a `Rejection`, or None where the island is of another kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import Pool2d, Requantize
from accelsim.legalize.arithmetic import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.operators import IntegerOp, Rejection
from accelsim.legalize.qnnpack import average_multiplier, reason_multiplier_unusable


def read_pool(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A pool over windows of one quantized tensor."""
    node = _through_indices(frame.graph, node)
    readers = {
        "relax.nn.max_pool2d": _max_pool,
        "relax.nn.avg_pool2d": _average_pool,
        "relax.nn.adaptive_avg_pool2d": _adaptive_pool,
        "relax.mean": _mean,
    }
    if node.op not in readers:
        return None
    leaf = leaf_of(frame.graph, node.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if len(leaf.shape) != 4:
        return Rejection(f"its input of shape {leaf.shape} is not (n, c, h, w)")
    return readers[node.op](frame, node, leaf)


def _through_indices(graph: Graph, node: Node) -> Node:
    """The pool behind element 0 of a (values, indices) tuple."""
    if node.op == "tuple_element" and int(node.value.index) == 0:
        pair = graph.producer(node.args[0])
        if pair is not None and pair.op == "tuple":
            values = graph.producer(pair.args[0])
            return values if values is not None else node
    return node


def _max_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    attrs = node.value.attrs
    if not leaf.quantization.same_levels(frame.quantization):
        return Rejection("its maximum is quantized to another scale than its input")
    if tuple(int(step) for step in attrs.dilation) != (1, 1):
        return Rejection("its window is dilated")
    kernel, stride = _window(attrs)
    low, high = frame.int8_limits
    compute = Pool2d(
        kind="max",
        kernel=kernel,
        stride=stride,
        # Where ceil_mode lets a window hang over, padding covers it: padding never wins.
        padding=_padding(attrs, leaf.shape, node.shape, overhang=True),
        input_zero_point=leaf.quantization.int8_zero_point,
        requantize=None,
        clamp_min=low,
        clamp_max=high,
    )
    return operator_of(frame, "max_pool2d", (leaf,), compute)


def _average_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    attrs = node.value.attrs
    kernel, stride = _window(attrs)
    padding = _padding(attrs, leaf.shape, node.shape, overhang=False)
    if padding != _padding(attrs, leaf.shape, node.shape, overhang=True):
        return Rejection("its last windows hang over the edge (ceil_mode)")
    if any(padding) and not attrs.count_include_pad:
        return Rejection("its divisor varies at the edges (count_include_pad=False)")
    return _sum(frame, leaf, kernel, stride, padding)


def _adaptive_pool(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    height, width = leaf.shape[2:]
    out_height, out_width = node.shape[2:]
    if height % out_height or width % out_width:
        return Rejection(f"{height}×{width} does not divide into {out_height}×{out_width} windows")
    kernel = (height // out_height, width // out_width)
    return _sum(frame, leaf, kernel, kernel, (0, 0, 0, 0))


def _mean(frame: Frame, node: Node, leaf: Leaf) -> IntegerOp | Rejection:
    axis = node.value.attrs.axis
    axes = sorted(int(value) % 4 for value in axis) if axis is not None else []
    if axes != [2, 3]:
        return Rejection(f"it averages over axes {axes}; only (2, 3) runs on the NPU")
    kernel = (leaf.shape[2], leaf.shape[3])
    return _sum(frame, leaf, kernel, kernel, (0, 0, 0, 0))


def _sum(
    frame: Frame,
    leaf: Leaf,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int, int, int],
) -> IntegerOp | Rejection:
    count = kernel[0] * kernel[1]
    multiplier = average_multiplier(leaf.quantization.scale, frame.quantization.scale, count)
    vector = np.full(leaf.shape[1], multiplier, np.float32)
    reason = reason_multiplier_unusable(vector)
    if reason is None and count * 255 >= 2**31:
        reason = f"the int32 sum of {count} elements may overflow"
    if reason is not None:
        return Rejection(reason)
    low, high = frame.int8_limits
    compute = Pool2d(
        kind="sum",
        kernel=kernel,
        stride=stride,
        padding=padding,
        input_zero_point=leaf.quantization.int8_zero_point,
        requantize=Requantize(vector, frame.quantization.int8_zero_point, low, high),
    )
    return operator_of(frame, "avg_pool2d", (leaf,), compute)


def _window(attrs: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    kernel = (int(attrs.pool_size[0]), int(attrs.pool_size[1]))
    return kernel, (int(attrs.strides[0]), int(attrs.strides[1]))


def _padding(
    attrs: Any, shape: tuple[int, ...], out_shape: tuple[int, ...], *, overhang: bool
) -> tuple[int, int, int, int]:
    """Top, left, bottom, right; with `overhang`, enough for every output that the graph has."""
    top, left, bottom, right = (int(value) for value in attrs.padding)
    if overhang:
        (kernel_h, kernel_w), (stride_h, stride_w) = _window(attrs)
        bottom = max(bottom, (out_shape[2] - 1) * stride_h + kernel_h - shape[2] - top)
        right = max(right, (out_shape[3] - 1) * stride_w + kernel_w - shape[3] - left)
    return top, left, bottom, right
