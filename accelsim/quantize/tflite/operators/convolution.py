"""CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.tflite.model import TfliteOperator
from accelsim.quantize.tflite.activation import activated
from accelsim.quantize.tflite.graph import Graph, Value
from accelsim.quantize.tflite.weights import biased, weight_of
from accelsim.quantize.tflite.windows import SAME, VALID, padding, pair

nn = relax.op.nn
_LAYOUTS = {"data_layout": "NHWC", "out_layout": "NHWC"}


def conv_2d(graph: Graph, operator: TfliteOperator) -> Value:
    """Weights (out, h, w, in / groups)."""
    return _convolution(graph, operator, depthwise=False)


def depthwise_conv_2d(graph: Graph, operator: TfliteOperator) -> Value:
    """Weights (1, h, w, out): outputs of one input channel follow each other."""
    return _convolution(graph, operator, depthwise=True)


def _convolution(graph: Graph, operator: TfliteOperator, depthwise: bool) -> Value:
    source = graph.tensor(operator, 0)
    weight = weight_of(graph, operator, 1, 4, 3 if depthwise else 0)
    values = weight.values.transpose(3, 0, 1, 2) if depthwise else weight.values
    if depthwise:
        kernel = np.ascontiguousarray(values)
    else:
        kernel = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
    outputs, per_group, *taps = kernel.shape
    channels = _channels(graph, source.shape)
    groups = channels if depthwise else channels // per_group
    if groups * per_group != channels or outputs % max(groups, 1):
        raise graph.wrong(f"has weights of shape {weight.values.shape} for {channels} channels")
    stride = pair(graph, operator, "stride")
    dilation = pair(graph, operator, "dilation")
    around = padding(graph, operator, source.shape[1:3], taps, stride, dilation)
    call = nn.conv2d(
        graph.real(operator),
        weight.real(graph, kernel, 0),
        strides=list(stride),
        padding=list(around),
        dilation=list(dilation),
        groups=groups,
        kernel_layout="OIHW",
        **_LAYOUTS,
    )
    return activated(graph, operator, biased(graph, operator, 2, graph.emit(call), source, weight))


def transpose_conv(graph: Graph, operator: TfliteOperator) -> Value:
    """Inputs: the output's shape, weights (out, h, w, in), the activation, perhaps a bias."""
    source, target = graph.tensor(operator, 2), graph.output(operator)
    weight = weight_of(graph, operator, 1, 4, 0)
    if graph.integers(operator, 0) != target.shape:
        raise graph.wrong(f"is to give {graph.integers(operator, 0)}, its output is {target.shape}")
    channels = _channels(graph, source.shape)
    if weight.values.shape[3] != channels or len(target.shape) != 4:
        raise graph.wrong(f"has weights of shape {weight.values.shape} for {channels} channels")
    stride = pair(graph, operator, "stride")
    kernel = np.ascontiguousarray(weight.values.transpose(3, 0, 1, 2))
    before, after, extra = [], [], []
    for axis in (0, 1):
        size, out, step = source.shape[1 + axis], target.shape[1 + axis], stride[axis]
        taps = kernel.shape[2 + axis]
        cut = _cut(graph, operator, size, out, step, taps)
        end = (size - 1) * step + taps - cut - out
        before.append(cut)
        after.append(max(0, end))
        extra.append(max(0, -end))
        if extra[-1] >= step:
            raise graph.wrong(f"gives {out} elements from {size} by steps of {step}")
    call = nn.conv2d_transpose(
        graph.real(operator, 2),
        weight.real(graph, kernel, 1),
        strides=list(stride),
        padding=[*before, *after],
        output_padding=extra,
        kernel_layout="IOHW",
        **_LAYOUTS,
    )
    return activated(graph, operator, biased(graph, operator, 3, graph.emit(call), source, weight))


def _cut(graph: Graph, operator: TfliteOperator, size: int, out: int, step: int, taps: int) -> int:
    """What is cut off before the first output, as the convolution that it turns round pads."""
    kind: Any = operator.options["padding"]
    if kind not in (SAME, VALID):
        raise graph.wrong(f"has padding of the unknown kind {kind}")
    needed = -(-out // step) if kind == SAME else (out - taps) // step + 1
    if needed != size:
        raise graph.wrong(f"gives {out} elements from {size} by steps of {step}")
    return max(0, (needed - 1) * step + taps - out) // 2


def _channels(graph: Graph, shape: tuple[int, ...]) -> int:
    if len(shape) != 4:
        raise graph.wrong(f"takes (n, h, w, c), and its input is {shape}")
    return shape[3]


CONVERTERS = {
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "TRANSPOSE_CONV": transpose_conv,
}
