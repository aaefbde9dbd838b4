"""Copies of pixels from one view to another, as they are or through the vector engine.

What comes in: two views of one shape. What goes out: units appended to the builder. It must not
know which operator moves data.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.artifacts import Requantize, Step
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.parameters import shared_rows
from accelsim.schedule.pointwise import Place, clamped, requantized
from accelsim.schedule.view import Box, View, load_box, merged, spans, store_box, tail


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a value on the way; without `requantize` only pad lanes become 0."""

    zero_point: int = 0
    requantize: Requantize | None = None


def copy(
    builder: Builder,
    index: int,
    name: str,
    views: tuple[View, View],
    change: Change | None = None,
    tile: int = 0,
) -> int:
    """Units that copy a view, tiles numbered from `tile`; the number after the last one.

    Without a `change` rows go from DRAM to DRAM as they are, pad lanes included.
    """
    source, target = merged(*views)
    images, height, width = target.shape
    blocks_tile = min(target.blocks, builder.inputs.size, MAX_COUNT)
    pixels = min(builder.inputs.size // blocks_tile, MAX_COUNT)
    cols_tile = min(width, pixels)
    rows_tile = min(height, max(1, pixels // cols_tile))
    for image in range(images):
        for rows in spans(height, rows_tile):
            for cols in spans(width, cols_tile):
                for blocks in spans(target.blocks, blocks_tile):
                    box = Box(image, rows, cols, blocks)
                    _tile(builder, index, name, (source, target), change, tile, box)
                    tile += 1
    return tile


def _tile(
    builder: Builder,
    index: int,
    name: str,
    views: tuple[View, View],
    change: Change | None,
    tile: int,
    box: Box,
) -> None:
    source, target = views
    config = builder.config
    unit = Unit(index)
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(config, source, box, base, index, tile))
    if change is not None:
        moved, _ = builder.outputs.take(None)
        place = Place(box.shape, tail(target.channels, box.blocks, config.lanes), index, tile)
        unit.compute.append(_changed(builder, unit, name, place, change, base, moved))
        base = moved
    unit.compute.append(store_box(config, target, box, base, index, tile))
    builder.units.append(unit)


def _changed(
    builder: Builder, unit: Unit, name: str, place: Place, change: Change, base: int, target: int
) -> Step:
    if change.requantize is None:
        return clamped(builder, place, base, target, -128, 127)
    chunk = shared_rows(change.requantize, builder.config.lanes, name)
    row = builder.load_params((unit.layer, chunk), chunk, unit, place.tile)
    return requantized(builder, place, (base, target, row), change.zero_point, change.requantize)
