"""Convolutions and linear layers, with or without bias."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm import te

from accelsim.artifacts import F32, I8, Conv2d, Requantize
from accelsim.errors import ModelError
from accelsim.legalize.expressions import Arguments, output, output_shape, padded, requantized
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.qnnpack import (
    convolution_multiplier,
    integer_bias,
    reason_accumulator_overflows,
    reason_multiplier_unusable,
)

LARGEST_LINEAR_KERNEL = 16
"""A linear layer over an (h, w) map runs as one "valid" convolution up to this h and w."""

_LARGEST_EXPANDED_WEIGHT = 1 << 24


@dataclass(frozen=True, slots=True)
class _Weight:
    values: I8  # in the graph's layout
    scale: F32  # (out_channels,)
    zero_point: int


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A conv2d or linear layer with or without bias."""
    graph = frame.graph
    core, bias = _split_bias(graph, node)
    if core.op not in ("relax.nn.conv2d", "relax.matmul"):
        return None
    weight_expr = core.args[1]
    if core.op == "relax.matmul":
        transpose = graph.producer(weight_expr)
        if transpose is None or transpose.op != "relax.permute_dims":
            return Rejection("it multiplies two activations")
        weight_expr = transpose.args[0]
    weight = _weight_of(graph, weight_expr, core.name)
    if isinstance(weight, Rejection):
        return weight
    if core.op == "relax.matmul":
        return _linear(frame, core, weight, bias)
    leaf = leaf_of(frame, core.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if len(leaf.shape) != 4:
        return Rejection(f"its input of shape {leaf.shape} is not (n, c, h, w)")
    attrs = core.value.attrs
    if attrs.data_layout != "NCHW" or attrs.kernel_layout != "OIHW":
        return Rejection(f"its layout is {attrs.data_layout}/{attrs.kernel_layout}")
    groups, channels = int(attrs.groups), leaf.shape[1]
    outputs = weight.values.shape[0]
    depthwise = groups > 1 and groups == channels == outputs
    if groups > 1 and not depthwise:
        if weight.values.size * groups > _LARGEST_EXPANDED_WEIGHT:
            return Rejection(f"its {groups} groups are too large to run as one convolution")
        weight = replace(weight, values=_without_groups(weight, groups))
    top, left, bottom, right = (int(value) for value in attrs.padding)
    compute = _compute(frame, leaf, weight, weight.values.transpose(0, 2, 3, 1), bias)
    if isinstance(compute, Rejection):
        return compute
    compute = replace(
        compute,
        stride=_pair(attrs.strides),
        padding=(top, left, bottom, right),
        dilation=_pair(attrs.dilation),
        depthwise=depthwise,
    )
    return operator_of(frame, "depthwise_conv2d" if depthwise else "conv2d", (leaf,), compute)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Σ (x - zx)(w - zw) + bias, requantized."""
    (x,) = arguments.activations
    compute, values = op.compute, arguments.values
    inside = padded(x, compute.padding, "int16", 0, values.input_zero_point)
    _, kernel_h, kernel_w, inputs = compute.weight.shape
    (stride_h, stride_w), (dilation_h, dilation_w) = compute.stride, compute.dilation
    channel = te.reduce_axis((0, inputs), name="channel")
    tap_h = te.reduce_axis((0, kernel_h), name="tap_h")
    tap_w = te.reduce_axis((0, kernel_w), name="tap_w")
    centred = te.compute(
        compute.weight.shape,
        lambda *index: (
            values.weight(*index).astype("int16") - values.weight_zero_point.astype("int16")
        ),
        name="centred",
    )

    def product(image: Any, row: Any, column: Any, out: Any) -> Any:
        activation = inside(
            image,
            row * stride_h + tap_h * dilation_h,
            column * stride_w + tap_w * dilation_w,
            out if compute.depthwise else channel,
        )
        factor = centred(out, tap_h, tap_w, channel)
        return te.sum(
            activation.astype("int32") * factor.astype("int32"), axis=[channel, tap_h, tap_w]
        )

    sums = te.compute(output_shape(op), product, name="accumulator")

    def element(*index: Any) -> Any:
        total = sums(*index) + values.bias(index[3])
        return requantized(total, values.requantize, index[3])

    return output(op, element, op.op)


def _split_bias(graph: Graph, node: Node) -> tuple[Node, F32 | None]:
    """The convolution or matmul, and the float bias added to it."""
    if node.op != "relax.add":
        return node, None
    for value, other in (tuple(node.args), tuple(node.args)[::-1]):
        core = graph.producer(value)
        if core is not None and core.op in ("relax.nn.conv2d", "relax.matmul"):
            bias = _bias_constant(graph, other)
            if bias is not None:
                return core, bias.astype(np.float32).reshape(-1)
    return node, None


def _bias_constant(graph: Graph, expr: Any) -> np.ndarray | None:
    node = graph.producer(expr)
    if node is not None and node.op == "relax.reshape":
        expr = node.args[0]
    return graph.constant(expr)


def _weight_of(graph: Graph, expr: Any, name: str) -> _Weight | Rejection:
    node = graph.producer(expr)
    if node is None or node.op != "relax.dequantize":
        return Rejection("its weights are not quantized")
    values = graph.constant(node.args[0])
    scale, zero_point = graph.constant(node.args[1]), graph.constant(node.args[2])
    if values is None or scale is None or zero_point is None:
        return Rejection("its weights are not constants")
    if values.dtype not in (np.int8, np.uint8):
        raise ModelError(f"Layer {name!r} has {values.dtype} weights; they must be int8 or uint8.")
    if len(set(zero_point.reshape(-1).tolist())) != 1:
        return Rejection("its weights have a different zero point in each channel")
    if scale.size not in (1, values.shape[0]) or (
        scale.size > 1 and int(node.value.attrs.axis) % values.ndim != 0
    ):
        return Rejection("its weights are not quantized per output channel")
    shift = 128 if values.dtype == np.uint8 else 0
    return _Weight(
        values=(values.astype(np.int16) - shift).astype(np.int8),
        scale=np.broadcast_to(scale.astype(np.float32).reshape(-1), (values.shape[0],)).copy(),
        zero_point=int(zero_point.reshape(-1)[0]) - shift,
    )


def _linear(frame: Frame, core: Node, weight: _Weight, bias: F32 | None) -> IntegerOp | Rejection:
    leaf, flattened = _flattened_leaf(frame, core.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    if len(core.shape) != 2 or len(leaf.shape) not in (2, 4):
        return Rejection(f"its output of shape {core.shape} is not (n, m)")
    outputs, inputs = weight.values.shape
    channels, height, width = leaf.shape[1:] if len(leaf.shape) == 4 else (inputs, 1, 1)
    if channels * height * width != inputs:
        return Rejection(f"its input of shape {leaf.shape} does not match {inputs} weights")
    if max(height, width) > LARGEST_LINEAR_KERNEL:
        return Rejection(
            f"it flattens a {height}×{width} map; up to "
            f"{LARGEST_LINEAR_KERNEL}×{LARGEST_LINEAR_KERNEL} runs on the NPU"
        )
    # The graph flattens (c, h, w); the NPU's data lie as (h, w, c), so the weights are permuted.
    kernels = weight.values.reshape(outputs, channels, height, width).transpose(0, 2, 3, 1)
    compute = _compute(frame, leaf, weight, kernels, bias)
    if isinstance(compute, Rejection):
        return compute
    return operator_of(frame, "linear", (leaf,), compute, absorbed=flattened)


def _flattened_leaf(frame: Frame, expr: Any) -> tuple[Leaf | None, tuple[str, ...]]:
    """The activation behind a linear layer's flatten, and the names of absorbed layers."""
    graph = frame.graph
    names: list[str] = []
    while True:
        node = graph.producer(expr)
        if node is not None and node.op in ("relax.reshape", "relax.flatten"):
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
        if reshape is None or reshape.op not in ("relax.reshape", "relax.flatten"):
            return leaf, tuple(names)
        source = leaf_of(frame, reshape.args[0])
        if (
            source is None
            or source.shape[0] != leaf.shape[0]
            or not source.quantization.same_levels(leaf.quantization)
        ):
            return leaf, tuple(names)
        names.insert(0, reshape.name)
        expr = reshape.args[0]
        if len(source.shape) != 2:
            return source, tuple(names)


def _compute(
    frame: Frame, leaf: Leaf, weight: _Weight, kernels: I8, bias: F32 | None
) -> Conv2d | Rejection:
    """The arithmetic, with `kernels` (out_channels, kernel_h, kernel_w, in_channels_per_group)."""
    outputs = kernels.shape[0]
    quantized = leaf.quantization
    float_bias = np.zeros(outputs, np.float32) if bias is None else bias
    integers = integer_bias(float_bias, quantized.scale, weight.scale)
    if isinstance(integers, str):
        return Rejection(integers)
    multiplier = convolution_multiplier(quantized.scale, weight.scale, frame.quantization.scale)
    zero_point = quantized.int8_zero_point
    reason = reason_multiplier_unusable(multiplier) or reason_accumulator_overflows(
        kernels, weight.zero_point, integers, zero_point
    )
    if reason is not None:
        return Rejection(reason)
    low, high = frame.int8_limits
    return Conv2d(
        weight=np.ascontiguousarray(kernels),
        bias=integers,
        input_zero_point=zero_point,
        weight_zero_point=weight.zero_point,
        requantize=Requantize(multiplier, frame.quantization.int8_zero_point, low, high),
    )


def _without_groups(weight: _Weight, groups: int) -> I8:
    """The weights of one ungrouped convolution: outside its group a weight is the zero point."""
    outputs, per_group, height, width = weight.values.shape
    shape = (outputs, per_group * groups, height, width)
    dense = np.full(shape, weight.zero_point, dtype=np.int8)
    rows = outputs // groups
    for group in range(groups):
        out, inner = (
            slice(group * rows, (group + 1) * rows),
            slice(group * per_group, (group + 1) * per_group),
        )
        dense[out, inner] = weight.values[out]
    return dense


def _pair(values: Any) -> tuple[int, int]:
    first, second = (int(value) for value in values)
    return first, second


OPERATOR = Operator(
    ops=("conv2d", "depthwise_conv2d", "linear"),
    starts=("relax.nn.conv2d", "relax.matmul", "relax.add"),
    compute=Conv2d,
    read=read,
    expression=expression,
)
