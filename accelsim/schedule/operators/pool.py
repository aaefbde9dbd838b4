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
from accelsim.schedule.limits import MAX_COUNT, MAX_KERNEL, largest_tile
from accelsim.schedule.long_maximum import Window, schedule_long_maximum
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
from accelsim.schedule.view import (
    Box,
    load_box,
    spans,
    store_box,
    tensor_view,
)
from accelsim.schedule.window import tile_sizes


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
        tiling = _choose(builder, region)
        if tiling is not None:
            row_splits = max(row_splits, -(-region.rows.out // tiling[0]))
            col_splits = max(col_splits, -(-region.cols.out // tiling[1]))
            tiles = _windows(builder, index, tiles, layer, region, tiling)
        elif pool.kind == "sum":
            job = _as_depthwise(builder, index, layer.name, region)
            row_splits = max(row_splits, facts(job)["row_splits"])
            tiles = emit(job, tiles)
        else:
            window = Window(region.pool, region.rows, region.cols, region.source, region.target)
            tiles = schedule_long_maximum(builder, index, window, tiles)
    return {
        "tiles": tiles,
        "regions": len(found),
        "row_splits": row_splits,
        "col_splits": col_splits,
        "padded": int(any(pool.padding)),
        "pad_zero_point": pool.input_zero_point,
    }


def _choose(builder: Builder, region: Region) -> tuple[int, int, int] | None:
    """Rows, columns and blocks of a tile: as many blocks, then columns, then rows as fit."""
    pool, rows, cols, requantize = region.pool, region.rows, region.cols, region.requantize
    if max(pool.kernel) > MAX_KERNEL:
        return None
    most = MAX_COUNT
    if requantize is not None and not is_shared(requantize):
        most = min(most, builder.params.size // row_count(requantize))
    for blocks in tile_sizes(region.target.blocks):
        if blocks > most:
            continue
        for w in tile_sizes(cols.out):
            in_w = cols.longest(w, pool.kernel[1])
            for h in tile_sizes(rows.out):
                in_h = rows.longest(h, pool.kernel[0])
                if (
                    in_h * in_w * blocks <= builder.inputs.size
                    and h * w * blocks <= builder.outputs.size
                    and max(in_h, in_w) <= MAX_COUNT
                    and h <= largest_tile(rows)
                    and w <= largest_tile(cols)
                ):
                    return h, w, blocks
    return None


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


def _windows(
    builder: Builder,
    index: int,
    tile: int,
    layer: Layer,
    region: Region,
    tiling: tuple[int, int, int],
) -> int:
    """Units of all tiles of a region in the vector engine; the number after the last tile."""
    for image in range(region.source.shape[0]):
        for r in spans(region.rows.out, tiling[0]):
            for c in spans(region.cols.out, tiling[1]):
                for b in spans(region.target.blocks, tiling[2]):
                    box = Box(image, r, c, b)
                    _tile(builder, index, tile, layer.name, region, box)
                    tile += 1
    return tile


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
