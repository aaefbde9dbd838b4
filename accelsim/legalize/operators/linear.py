"""Linear layers: products of an activation's last axis with constant weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import I8, Conv2d
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of, reveal
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.operators import Operator
from accelsim.legalize.operators.convolution import expression
from accelsim.legalize.weights import Bias, Weight, core_and_bias, product_of, weight_of

LARGEST_MAP = 64
"""A linear layer over an (h, w) map runs as one "valid" convolution up to this h and w."""

_FLATTENING = ("relax.reshape", "relax.flatten")


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A matmul with a constant, with or without bias."""
    graph = frame.graph
    found = core_and_bias(graph, node, ("relax.matmul",))
    if found is None:
        return None
    core, bias = found
    if not _is_constant(graph, core.args[1]):
        return None
    weight = _weight(graph, core)
    if isinstance(weight, Rejection):
        return weight
    if weight.values.ndim != 2:
        return Rejection("its weights are a batch of matrices")
    if len(core.shape) == 2:
        return _flat(frame, core, weight, bias)
    leaf = leaf_of(frame, core.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if not leaf.layout.endswith("c") or not frame.layout.endswith("c"):
        return Rejection("its tensors do not have their channels last")
    return _operator(frame, leaf, weight, weight.values[:, None, None, :], bias)


def _flat(frame: Frame, core: Node, weight: Weight, bias: Bias | None) -> IntegerOp | Rejection:
    """A layer of (n, k), perhaps flattened from (n, c, h, w) or (n, h, w, c)."""
    leaf, flattened = _flattened_leaf(frame, core.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if len(leaf.shape) not in (2, 4):
        return Rejection(f"its input of shape {leaf.shape} has neither two axes nor four")
    outputs, inputs = weight.values.shape
    _, height, width, channels = nhwc(leaf.shape, leaf.layout)
    if channels * height * width != inputs:
        return Rejection(f"its input of shape {leaf.shape} does not match {inputs} weights")
    if max(height, width) > LARGEST_MAP:
        return Rejection(
            f"it flattens a {height}×{width} map; up to {LARGEST_MAP}×{LARGEST_MAP} runs on the NPU"
        )
    if leaf.layout == "nhwc":
        kernels = weight.values.reshape(outputs, height, width, channels)
    else:  # The graph flattens (c, h, w); the NPU's data lie as (h, w, c).
        kernels = weight.values.reshape(outputs, channels, height, width).transpose(0, 2, 3, 1)
    reveal(frame, leaf.var)
    return _operator(frame, leaf, weight, kernels, bias, flattened)


def _operator(
    frame: Frame,
    leaf: Leaf,
    weight: Weight,
    kernels: I8,
    bias: Bias | None,
    absorbed: tuple[str, ...] = (),
) -> IntegerOp | Rejection:
    """The convolution with `kernels` (out_channels, kernel_h, kernel_w, in_channels)."""
    product = product_of(frame, leaf, weight, kernels, bias, connected=True)
    if isinstance(product, Rejection):
        return product
    compute = Conv2d(
        weight=np.ascontiguousarray(kernels),
        bias=product.bias,
        input_zero_point=product.input_zero_point,
        weight_zero_point=product.weight_zero_point,
        requantize=product.requantize,
    )
    return operator_of(frame, "linear", (leaf,), compute, absorbed=absorbed)


def _is_constant(graph: Graph, expr: Any) -> bool:
    """Whether an operand is computed from constants alone."""
    node = graph.producer(expr)
    while node is not None and node.op in ("relax.permute_dims", "relax.dequantize"):
        expr = node.args[0]
        node = graph.producer(expr)
    return graph.constant(expr) is not None


def _weight(graph: Graph, core: Node) -> Weight | Rejection:
    """Weights as (out, in), which the graph has as they are or transposed."""
    expr = core.args[1]
    transpose = graph.producer(expr)
    if transpose is not None and transpose.op == "relax.permute_dims":
        return weight_of(graph, transpose.args[0], core.name)
    weight = weight_of(graph, expr, core.name, axis=-1)
    if isinstance(weight, Rejection) or weight.values.ndim != 2:
        return weight
    return Weight(weight.values.T, weight.scale, weight.zero_point)


def _flattened_leaf(frame: Frame, expr: Any) -> tuple[Leaf | None, tuple[str, ...]]:
    """The activation behind a linear layer's flatten, and the names of absorbed layers."""
    graph = frame.graph
    names: list[str] = []
    while True:
        node = graph.producer(expr)
        if node is not None and node.op in _FLATTENING:
            if len(node.shape) != 2:
                return None, ()
            expr = node.args[0]
            continue
        leaf = leaf_of(frame, expr)
        if leaf is None or len(leaf.shape) != 2:
            return leaf, tuple(names)
        quantize = graph.producer(leaf.var)
        reshape = (
            graph.producer(quantize.args[0])
            if quantize is not None and quantize.op == "relax.quantize"
            else None
        )
        if reshape is None or reshape.op not in _FLATTENING:
            return leaf, tuple(names)
        source = leaf_of(frame, reshape.args[0])
        if (
            source is None
            or not source.shape
            or source.shape[0] != leaf.shape[0]
            or not source.quantization.same_levels(leaf.quantization)
        ):
            return leaf, tuple(names)
        if len(source.shape) != 2 and not _runs_flattened(source):
            return leaf, tuple(names)
        names.insert(0, reshape.name)
        expr = reshape.args[0]
        if len(source.shape) != 2:
            return source, tuple(names)


def _runs_flattened(source: Leaf) -> bool:
    """Whether a linear layer can take a map without a flatten before it."""
    if len(source.shape) != 4 or not source.layout:
        return False
    return max(nhwc(source.shape, source.layout)[1:3]) <= LARGEST_MAP


OPERATOR = Operator(
    ops=("linear",),
    starts=("relax.matmul", "relax.add"),
    compute=Conv2d,
    read=read,
    expression=expression,
)
