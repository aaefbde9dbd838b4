"""Pooling: windows in the vector engine, or windows beyond it in pieces.

A sum whose window exceeds the input buffer becomes a depthwise convolution with weights of 1, whose
passes accumulate; a maximum becomes the maximum of its pieces' maxima. Where a sum is divided by
the number of elements inside the input, the output is cut into regions of one number each.
"""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Layer, Pool2d, TensorExtent
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.constant_weights import ConstantWeights
from accelsim.schedule.conv_tiling import ConvShape, choose
from accelsim.schedule.counting import Region, needed, regions, window_fields
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.long_maximum import schedule_long_maximum
from accelsim.schedule.matrix import MatrixJob, emit, facts
from accelsim.schedule.operators import Operator
from accelsim.schedule.parameters import (
    end_values,
    is_shared,
    parameter_rows,
    row_count,
    shared_rows,
)
from accelsim.schedule.step import make_step
from accelsim.schedule.tiles import Tiling, boxes, window_tiling
from accelsim.schedule.view import Box, load_box, store_box, tensor_view


def schedule_pool(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one pooling layer; returns its facts."""
    pool = layer.compute
    assert isinstance(pool, Pool2d)
    lanes = builder.config.lanes
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    tiles, row_splits, col_splits = 0, 1, 1
    found = regions(layer.name, pool, source, target)
    for region in found:
        tiling = _tiling(builder, region)
        if tiling is not None:
            row_splits = max(row_splits, -(-region.rows.out // tiling[0]))
            col_splits = max(col_splits, -(-region.cols.out // tiling[1]))
            for box in boxes(region.target, tiling):
                _tile(builder, index, tiles, layer.name, region, box)
                tiles += 1
        elif pool.kind == "sum":
            job = _as_depthwise(builder, index, layer.name, region)
            row_splits = max(row_splits, facts(job)["row_splits"])
            tiles = emit(job, tiles)
        else:
            tiles = schedule_long_maximum(builder, index, region, tiles)
    return {
        "tiles": tiles,
        "regions": len(found),
        "row_splits": row_splits,
        "col_splits": col_splits,
        "padded": int(any(pool.padding)),
        "pad_zero_point": pool.input_zero_point,
    }


def _tiling(builder: Builder, region: Region) -> Tiling | None:
    """Tiles whose windows and parameter rows fit."""
    most, requantize = MAX_COUNT, region.requantize
    if requantize is not None and not is_shared(requantize):
        most = min(most, builder.params.size // row_count(requantize))
    return window_tiling(region, builder.inputs.size, builder.outputs.size, most)


def _as_depthwise(builder: Builder, index: int, name: str, region: Region) -> MatrixJob:
    assert region.requantize is not None
    pool, source, channels = region.pool, region.source, region.target.channels
    shape = ConvShape(
        source.shape[0],
        region.rows,
        region.cols,
        pool.kernel,
        source.blocks,
        region.target.blocks,
        depthwise=True,
        par_rows=row_count(region.requantize),
    )
    return MatrixJob(
        builder,
        index,
        name,
        source,
        region.target,
        shape,
        choose(shape, builder.config, name),
        ConstantWeights(np.ones((channels, *pool.kernel, 1), np.int8)),
        np.zeros(channels, np.int32),
        region.requantize,
        pool.input_zero_point,
    )


def _tile(
    builder: Builder,
    index: int,
    tile: int,
    name: str,
    region: Region,
    box: Box,
) -> None:
    config, pool, unit = builder.config, region.pool, Unit(index)
    piece = needed(region, box)
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(config, region.source, piece, base, index, tile))
    dst_base, _ = builder.outputs.take(None)
    values = {
        "in_base": base,
        "dst_base": dst_base,
        **window_fields(region, box, config.lanes),
    }
    if region.requantize is None:
        values |= {"clamp_min": pool.clamp_min, "clamp_max": pool.clamp_max}
    else:
        values |= {"sum": 1, "input_zero_point": pool.input_zero_point}
        values |= _end(builder, unit, tile, name, region, box)
    unit.compute.append(make_step(config, "pool", values, index, tile))
    unit.compute.append(store_box(config, region.target, box, dst_base, index, tile))
    builder.units.append(unit)


def _end(
    builder: Builder, unit: Unit, tile: int, name: str, region: Region, box: Box
) -> dict[str, int]:
    """Load the parameter rows of a sum if need be; fields that name them."""
    requantize, lanes = region.requantize, builder.config.lanes
    assert requantize is not None
    if is_shared(requantize):
        chunk, stride = shared_rows(requantize, lanes, name), 0
    else:
        zeros = np.zeros(region.target.channels, np.int32)
        chunk = parameter_rows(zeros, requantize, box.blocks, lanes, name)
        stride = row_count(requantize) if box.shape[2] > 1 else 0
    par_base = builder.load_params((unit.layer, chunk), chunk, unit, tile)
    return {"par_base": par_base, "par_stride": stride, **end_values(requantize)}


OPERATORS = (Operator(Pool2d, schedule_pool),)
