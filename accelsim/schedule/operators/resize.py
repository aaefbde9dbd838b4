"""Bilinear resizes: outputs with the same weights become one depthwise convolution.

Along an axis, outputs that have the same pair of weights lie at equal distances, and so do the
inputs that they mix: each such run is one axis of a convolution of one or two taps at a stride,
whose results are stored at a stride. A run of one tap reads only the inputs that it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from accelsim.artifacts import Interpolation, Layer, Resize2d, TensorExtent
from accelsim.schedule.build import Builder
from accelsim.schedule.conv_tiling import ConvShape, choose
from accelsim.schedule.matrix import MatrixJob, emit, facts
from accelsim.schedule.operators import Operator
from accelsim.schedule.parameters import row_count
from accelsim.schedule.summed_weights import WEIGHT_ZERO_POINT, summed
from accelsim.schedule.view import View, check_strides, tensor_view
from accelsim.schedule.window import Axis


@dataclass(frozen=True, slots=True)
class Run:
    """Outputs first, first + step, … of one axis, which mix inputs source, source + stride, …"""

    first: int
    step: int
    count: int
    source: int
    stride: int  # 0 where all have the same input, which one tap may only
    weights: tuple[int, ...]  # one or two


def schedule_resize(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of every pair of runs; returns the facts of the last one and all tiles."""
    resize = layer.compute
    assert isinstance(resize, Resize2d)
    lanes = builder.config.lanes
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    rows, columns = runs_of(resize.rows), runs_of(resize.columns)
    tiles, summands, found = 0, 1, {}
    for part, runs in enumerate(product(rows, columns)):
        job = _job(builder, (index, part, layer.name), resize, (source, target), runs)
        tiles = emit(job, tiles)
        summands, found = max(summands, job.summands), facts(job)
    return {
        "tiles": tiles,
        "macs": prod(tensors[layer.output].shape) * 4,
        **found,
        "phases": len(rows) * len(columns),
        "summands": summands,
    }


def runs_of(line: Interpolation) -> list[Run]:
    """The outputs of an axis, by weights and then in order."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for output, (before, behind) in enumerate(line.weight.tolist()):
        groups.setdefault((before, behind) if behind else (before,), []).append(output)
    return [
        run
        for weights, outputs in groups.items()
        for run in _progressions(outputs, [int(line.first[i]) for i in outputs], weights)
    ]


def _progressions(outputs: list[int], sources: list[int], weights: tuple[int, ...]) -> list[Run]:
    """Runs as long as both distances stay the same."""
    found, at = [], 0
    while at < len(outputs):
        end, step, stride = at + 1, 1, 1
        if end < len(outputs):
            apart, along = outputs[end] - outputs[at], sources[end] - sources[at]
            if along > 0 or (along == 0 and len(weights) == 1):
                step, stride = apart, along
                while end < len(outputs) and (
                    outputs[end] - outputs[end - 1] == step
                    and sources[end] - sources[end - 1] == stride
                ):
                    end += 1
        found.append(Run(outputs[at], step, end - at, sources[at], stride, weights))
        at = end
    return found


def _job(
    builder: Builder,
    place: tuple[int, int, str],
    resize: Resize2d,
    views: tuple[View, View],
    runs: tuple[Run, Run],
) -> MatrixJob:
    index, part, name = place
    rows, cols = runs
    images = views[0].shape[0]
    source = _inputs(views[0], runs)
    target = views[1].every(
        (0, rows.first, cols.first), (1, rows.step, cols.step), (images, rows.count, cols.count)
    )
    check_strides(name, source, target)
    shape = ConvShape(
        images,
        _axis(rows, source.shape[1]),
        _axis(cols, source.shape[2]),
        (len(rows.weights), len(cols.weights)),
        source.blocks,
        target.blocks,
        depthwise=True,
        par_rows=row_count(resize.requantize),
    )
    weights = summed(np.outer(rows.weights, cols.weights).astype(np.int32), target.channels)
    return MatrixJob(
        builder,
        index,
        name,
        source,
        target,
        shape,
        choose(shape, builder.config, name),
        weights,
        None,
        resize.requantize,
        resize.input_zero_point,
        WEIGHT_ZERO_POINT,
        part,
        len(weights.summands),
    )


def _inputs(view: View, runs: tuple[Run, Run]) -> View:
    """What a pair of runs reads: of one tap its inputs alone, of two all from the first one on."""
    (first_h, step_h, size_h), (first_w, step_w, size_w) = (
        (run.source, run.stride, run.count)
        if len(run.weights) == 1
        else (run.source, 1, (run.count - 1) * run.stride + 2)
        for run in runs
    )
    return view.every((0, first_h, first_w), (1, step_h, step_w), (view.shape[0], size_h, size_w))


def _axis(run: Run, size: int) -> Axis:
    """A run over the inputs that it reads."""
    return Axis(size, run.count, run.stride if len(run.weights) == 2 else 1, 1, 0)


OPERATORS = (Operator(Resize2d, schedule_resize),)
