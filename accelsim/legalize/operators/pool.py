"""Pools over windows: max, average, adaptive average and spatial mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Pool2d, Requantize
from accelsim.legalize.expressions import (
    Arguments,
    output,
    output_shape,
    padded,
    requantized,
)
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.qnnpack import average_multiplier, reason_multiplier_unusable


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A pool over windows of one quantized tensor."""
    node = _through_indices(frame.graph, node)
    reader = _readers().get(node.op)
    if reader is None:
        return None
    leaf = leaf_of(frame, node.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if len(leaf.shape) != 4:
        return Rejection(f"its input of shape {leaf.shape} is not (n, c, h, w)")
    return reader(frame, node, leaf)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The largest element of each window, or the sum of them requantized."""
    (x,) = arguments.activations
    pool = arguments.values
    if op.compute.kind == "max":
        inside = padded(x, op.compute.padding, "int8", -128, tirx.const(0, "int8"))
        largest = _window_of(op, inside, te.max, "largest")
        low, high = (limit.astype("int8") for limit in (pool.clamp_min, pool.clamp_max))
        return output(op, lambda *index: tirx.max(tirx.min(largest(*index), high), low), op.op)
    inside = padded(x, op.compute.padding, "int32", 0, pool.input_zero_point)
    sums = _window_of(op, inside, te.sum, "sums")
    return output(op, lambda *index: requantized(sums(*index), pool.requantize, index[3]), op.op)


def _window_of(op: IntegerOp, inside: Any, reduce: Any, name: str) -> Any:
    """The reduction of each window, (n, h, w, c)."""
    tap_h = te.reduce_axis((0, op.compute.kernel[0]), name="tap_h")
    tap_w = te.reduce_axis((0, op.compute.kernel[1]), name="tap_w")
    stride_h, stride_w = op.compute.stride

    def element(image: Any, row: Any, column: Any, channel: Any) -> Any:
        value = inside(image, row * stride_h + tap_h, column * stride_w + tap_w, channel)
        return reduce(value, axis=[tap_h, tap_w])

    return te.compute(output_shape(op), element, name=name)


def _readers() -> dict[str, Callable[[Frame, Node, Leaf], IntegerOp | Rejection]]:
    return {
        "relax.nn.max_pool2d": _max_pool,
        "relax.nn.avg_pool2d": _average_pool,
        "relax.nn.adaptive_avg_pool2d": _adaptive_pool,
        "relax.mean": _mean,
    }


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


OPERATOR = Operator(
    ops=("max_pool2d", "avg_pool2d"),
    starts=("tuple_element", *_readers()),
    compute=Pool2d,
    read=read,
    expression=expression,
)
