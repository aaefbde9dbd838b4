"""Transposition: by DMA strides where channels stay, by products where they move.

The product of the identity and a matrix taken as transposed weights is the transposed matrix,
exactly: one summand of each sum is not 0, and its multiplier is 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from accelsim.artifacts import Layer, Requantize, TensorExtent, Transpose
from accelsim.errors import ModelError
from accelsim.schedule.activation_weights import ActivationWeights
from accelsim.schedule.build import Builder
from accelsim.schedule.conv_tiling import ConvShape, Tiling, choose
from accelsim.schedule.copying import copy
from accelsim.schedule.matrix import MatrixJob, emit
from accelsim.schedule.operators import Operator
from accelsim.schedule.view import View, check_strides, seen_views
from accelsim.schedule.window import Axis

CHANNELS = 3
UNCHANGED = Requantize(np.ones(1, np.float32), 0, -128, 127)


def schedule_transpose(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one transposition; returns its facts."""
    transpose = layer.compute
    assert isinstance(transpose, Transpose)
    lanes, axes = builder.config.lanes, transpose.axes
    source, target = seen_views((tensors[layer.inputs[0]], tensors[layer.output]), transpose, lanes)
    sizes = (*source.shape, source.channels)
    wanted = (*target.shape, target.channels)
    if sorted(axes) != [0, 1, 2, 3] or tuple(sizes[axis] for axis in axes) != wanted:
        raise ModelError(
            f"layer {layer.name}: axes {axes} of shape {sizes} do not give shape {wanted}"
        )
    if axes[CHANNELS] == CHANNELS:
        n, h, w = (source.strides[axis] for axis in axes[:CHANNELS])
        moved = replace(source, shape=target.shape, strides=(n, h, w))
        check_strides(layer.name, moved)
        return {"tiles": copy(builder, index, layer.name, (moved, target))}
    return {"tiles": _through_matrix(builder, index, layer.name, axes, (source, target))}


def _through_matrix(
    builder: Builder,
    index: int,
    name: str,
    axes: tuple[int, int, int, int],
    views: tuple[View, View],
) -> int:
    """A small transposition for each block of channels and each index of the two other axes."""
    source, target = views
    lanes = builder.config.lanes
    becomes, comes = axes[CHANNELS], axes.index(CHANNELS)
    others = [axis for axis in range(CHANNELS) if axis != comes]

    @cache
    def tiling(shape: ConvShape) -> Tiling:
        return choose(shape, builder.config, name)

    tiles = 0
    for at in product(*(range(target.shape[axis]) for axis in others)):
        read, written = [0, 0, 0], [0, 0, 0]
        for axis, i in zip(others, at, strict=True):
            read[axes[axis]], written[axis] = i, i
        for block in range(source.blocks):
            valid = min(lanes, source.channels - block * lanes)
            written[comes] = block * lanes
            identity = builder.constant_view(np.eye(valid, dtype=np.int8)[None, None])
            matrix = _line(source.channel_blocks((block, block + 1), lanes), becomes, read)
            pixels = _line(target, comes, written, valid)
            check_strides(name, matrix, pixels)
            row = Axis(valid, valid, 1, 1, 0)
            shape = ConvShape(1, Axis(1, 1, 1, 1, 0), row, (1, 1), 1, target.blocks, par_rows=0)
            job = MatrixJob(
                builder,
                index,
                name,
                identity,
                pixels,
                shape,
                tiling(shape),
                ActivationWeights(matrix, transposed=True),
                None,
                UNCHANGED,
                0,
            )
            tiles = emit(job, tiles)
    return tiles


def _line(view: View, axis: int, at: list[int], count: int | None = None) -> View:
    """Pixels along one axis as a row, from `at` on."""
    first = view.first + sum(i * s for i, s in zip(at, view.strides, strict=True))
    length = view.shape[axis] if count is None else count
    return replace(view, first=first, shape=(1, 1, length), strides=(0, 0, view.strides[axis]))


OPERATORS = (Operator(Transpose, schedule_transpose),)
