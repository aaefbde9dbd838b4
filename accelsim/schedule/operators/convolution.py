"""Convolution, depthwise convolution and linear layers."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from accelsim.artifacts import Conv2d, Layer, TensorExtent
from accelsim.schedule.build import Builder
from accelsim.schedule.constant_weights import ConstantWeights
from accelsim.schedule.conv_tiling import ConvShape, choose
from accelsim.schedule.depthwise import emit_plan
from accelsim.schedule.depthwise_plan import choose_plan
from accelsim.schedule.limits import check_padding
from accelsim.schedule.matrix import MatrixJob, emit, facts
from accelsim.schedule.operators import Operator
from accelsim.schedule.parameters import row_count
from accelsim.schedule.view import View, tensor_view
from accelsim.schedule.window import Axis


def schedule_conv(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one convolution; returns its facts."""
    conv = layer.compute
    assert isinstance(conv, Conv2d)
    lanes = builder.config.lanes
    source, target = tensors[layer.inputs[0]], tensors[layer.output]
    macs = prod(target.shape) * prod(conv.weight.shape[1:])
    source, target = _flat_if_pointwise(conv, source, target)
    job = conv_job(
        builder, index, layer.name, conv, (tensor_view(source, lanes), tensor_view(target, lanes))
    )
    plan = (
        choose_plan(job.shape, (job.source, job.target), builder.config) if conv.depthwise else None
    )
    found = {"tiles": emit(job), **facts(job)} if plan is None else emit_plan(job, plan)
    return {
        "macs": macs,
        **found,
        "padded": int(any(conv.padding)),
        "pad_zero_point": conv.input_zero_point,
    }


def conv_job(
    builder: Builder, index: int, name: str, conv: Conv2d, views: tuple[View, View]
) -> MatrixJob:
    """A convolution from one view to another. Raises ModelError where no tiling fits."""
    source, target = views
    stride, dilation, pad = conv.stride, conv.dilation, conv.padding
    shape = ConvShape(
        source.shape[0],
        Axis(source.shape[1], target.shape[1], stride[0], dilation[0], pad[0]),
        Axis(source.shape[2], target.shape[2], stride[1], dilation[1], pad[1]),
        (conv.weight.shape[1], conv.weight.shape[2]),
        source.blocks,
        target.blocks,
        conv.depthwise,
        row_count(conv.requantize),
    )
    check_padding(name, (shape.rows, shape.cols), shape.kernel)
    return MatrixJob(
        builder,
        index,
        name,
        source,
        target,
        shape,
        choose(shape, builder.config, name),
        ConstantWeights(conv.weight),
        conv.bias,
        conv.requantize,
        conv.input_zero_point,
        conv.weight_zero_point,
    )


def _flat_if_pointwise(
    conv: Conv2d, source: TensorExtent, target: TensorExtent
) -> tuple[TensorExtent, TensorExtent]:
    """A 1×1 convolution at stride 1 sees all pixels of all images as one row."""
    n, h, w, c = source.shape
    pointwise = conv.weight.shape[1:3] == (1, 1) and conv.stride == (1, 1)
    if not pointwise or any(conv.padding) or conv.depthwise:
        return source, target
    pixels = n * h * w
    return (
        replace(source, shape=(1, 1, pixels, c)),
        replace(target, shape=(1, 1, pixels, target.shape[3])),
    )


OPERATORS = (Operator(Conv2d, schedule_conv),)
