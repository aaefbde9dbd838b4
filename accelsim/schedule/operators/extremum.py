"""Extrema of windows with a table behind them: a maximum pool between two lookups.

The smallest element is -1 - max(-1 - x), and -1 - x is one of a table's functions. A table in front
makes room for its results in the input slot, one behind in the output slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Extremum, Layer, Pool2d, TensorExtent
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.counting import Region, needed, regions, window_fields
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.long_maximum import Tables, schedule_long_maximum
from accelsim.schedule.operators import Operator
from accelsim.schedule.pointwise import Place, looked_up
from accelsim.schedule.step import make_step
from accelsim.schedule.tiles import boxes, window_tiling
from accelsim.schedule.view import Box, load_box, store_box, tail, tensor_view

_INVERSE = (-1 - np.arange(-128, 128)).astype("<i4").tobytes()


def schedule_extremum(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one layer; returns its facts."""
    own = layer.compute
    assert isinstance(own, Extremum)
    lanes = builder.config.lanes
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    pool = Pool2d(
        "max",
        own.kernel,
        own.stride,
        own.padding,
        0,
        None,
        dilation=own.dilation,
        adaptive=own.adaptive,
    )
    job = _Job(builder, index, _tables(own))
    tile = 0
    found = regions(layer.name, pool, source, target)
    for region in found:
        tiling = window_tiling(region, *job.tables.room(builder), MAX_COUNT)
        if tiling is None:
            tile = schedule_long_maximum(builder, index, region, tile, job.tables)
            continue
        for box in boxes(region.target, tiling):
            _tile(job, tile, region, box)
            tile += 1
    return {"tiles": tile, "regions": len(found), "padded": int(any(own.padding))}


@dataclass(frozen=True, slots=True)
class _Job:
    builder: Builder
    index: int
    tables: Tables


def _tables(own: Extremum) -> Tables:
    """What is looked up before the maximum and after it."""
    if own.kind == "min":
        return Tables(_INVERSE, own.table[::-1].astype("<i4").tobytes())
    identity = np.array_equal(own.table, np.arange(-128, 128))
    return Tables(None, None if identity else own.table.astype("<i4").tobytes())


def _tile(job: _Job, tile: int, region: Region, box: Box) -> None:
    builder, index, tables = job.builder, job.index, job.tables
    config, piece = builder.config, needed(region, box)
    unit = Unit(index)
    lanes = tail(region.target.channels, box.blocks, config.lanes)
    before, after = tables.load(builder, unit, tile)
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(config, region.source, piece, base, index, tile))
    if before is not None:
        place = Place(piece.shape, lanes, index, tile)
        found = base + builder.inputs.size // 2
        unit.compute.append(looked_up(builder, place, base, found, before))
        base = found
    result, _ = builder.outputs.take(None)
    values = {
        "in_base": base,
        "dst_base": result,
        **window_fields(region, box, config.lanes),
        "clamp_min": -128,
        "clamp_max": 127,
    }
    unit.compute.append(make_step(config, "pool", values, index, tile))
    if after is not None:
        place = Place(box.shape, lanes, index, tile)
        found = result + builder.outputs.size // 2
        unit.compute.append(looked_up(builder, place, result, found, after))
        result = found
    unit.compute.append(store_box(config, region.target, box, result, index, tile))
    builder.units.append(unit)


OPERATORS = (Operator(Extremum, schedule_extremum),)
