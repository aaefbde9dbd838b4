"""Transposed convolution: one ordinary convolution for each phase of the output.

Outputs at a distance of the stride meet the same taps. Each such phase is a convolution of stride 1
with those taps in reverse, whose results are stored at that distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

import numpy as np

from accelsim.artifacts import ConvTranspose2d, Layer, TensorExtent
from accelsim.schedule.build import Builder
from accelsim.schedule.constant_weights import ConstantWeights
from accelsim.schedule.conv_tiling import ConvShape, choose
from accelsim.schedule.limits import check_padding
from accelsim.schedule.matrix import MatrixJob, emit, facts
from accelsim.schedule.operators import Operator
from accelsim.schedule.parameters import row_count
from accelsim.schedule.view import View, check_strides, tensor_view
from accelsim.schedule.window import Axis


@dataclass(frozen=True, slots=True)
class Phase:
    """One axis of a phase: its outputs are first, first + stride, …; `axis` is over inputs."""

    first: int
    axis: Axis
    taps: tuple[int, ...]  # of the kernel, in the order of the inputs that they meet


def schedule_conv_transpose(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of every phase; returns the facts of the last one and the sums of all."""
    conv = layer.compute
    assert isinstance(conv, ConvTranspose2d)
    lanes = builder.config.lanes
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    axes = [
        _phases(source.shape[i + 1], target.shape[i + 1], conv.weight.shape[i + 1], conv, i)
        for i in range(2)
    ]
    tiles, found = 0, {}
    for part, (rows, cols) in enumerate(product(*axes)):
        job = _job(builder, index, layer.name, conv, (source, target), (rows, cols))
        tiles = emit(replace(job, part=part), tiles)
        found = facts(job)
    return {
        "tiles": tiles,
        "macs": prod(source.shape) * conv.weight.size,
        **found,
        "phases": len(axes[0]) * len(axes[1]),
        "padded": int(any(conv.padding)),
        "pad_zero_point": conv.input_zero_point,
    }


def _phases(size: int, out: int, kernel: int, conv: ConvTranspose2d, i: int) -> list[Phase]:
    """The phases of one axis that have outputs."""
    stride, dilation, pad = conv.stride[i], conv.dilation[i], conv.padding[i]
    result = []
    for first in range(min(stride, out)):
        met = [
            ((first + pad - tap * dilation) // stride, tap)
            for tap in range(kernel)
            if (first + pad - tap * dilation) % stride == 0
        ]
        met.sort()
        count = -(-(out - first) // stride)
        apart = dilation // gcd(stride, dilation) if len(met) > 1 else 1
        axis = Axis(size, count, 1, apart, -met[0][0] if met else 0)
        result.append(Phase(first, axis, tuple(tap for _, tap in met)))
    return result


def _job(
    builder: Builder,
    index: int,
    name: str,
    conv: ConvTranspose2d,
    views: tuple[View, View],
    phase: tuple[Phase, Phase],
) -> MatrixJob:
    source, target = views
    rows, cols = phase
    weight = conv.weight[:, rows.taps][:, :, cols.taps]
    if weight.size == 0:
        # No tap meets these outputs: a product of nothing leaves the bias.
        shape = (conv.weight.shape[0], 1, 1, conv.weight.shape[3])
        weight = np.full(shape, conv.weight_zero_point, np.int8)
        rows, cols = (replace(p, axis=replace(p.axis, dilation=1, pad=0)) for p in (rows, cols))
    part = target.every(
        (0, rows.first, cols.first),
        (1, *conv.stride),
        (target.shape[0], rows.axis.out, cols.axis.out),
    )
    check_strides(name, part)
    shape4 = ConvShape(
        source.shape[0],
        rows.axis,
        cols.axis,
        (weight.shape[1], weight.shape[2]),
        source.blocks,
        target.blocks,
        par_rows=row_count(conv.requantize),
    )
    check_padding(name, (shape4.rows, shape4.cols), shape4.kernel)
    return MatrixJob(
        builder,
        index,
        name,
        source,
        part,
        shape4,
        choose(shape4, builder.config, name),
        ConstantWeights(weight),
        conv.bias,
        conv.requantize,
        conv.input_zero_point,
        conv.weight_zero_point,
    )


OPERATORS = (Operator(ConvTranspose2d, schedule_conv_transpose),)
