"""Copies of pixels from one view to another, as they are or through the vector engine.

What comes in: two views of one shape. What goes out: units appended to the builder. It must not
know which operator moves data.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelsim.artifacts import I8, Requantize, Step
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.parameters import shared_rows
from accelsim.schedule.pointwise import Place, clamped, looked_up, requantized
from accelsim.schedule.tiles import boxes
from accelsim.schedule.view import Box, View, load_box, merged, store_box, tail


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a value on the way; with neither, only pad lanes become 0."""

    zero_point: int = 0
    requantize: Requantize | None = None
    table: I8 | None = None  # (256,): table[x + 128]


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
    _, height, width = target.shape
    blocks_tile = min(target.blocks, builder.inputs.size, MAX_COUNT)
    pixels = min(builder.inputs.size // blocks_tile, MAX_COUNT)
    cols_tile = min(width, pixels)
    rows_tile = min(height, max(1, pixels // cols_tile))
    for box in boxes(target, (rows_tile, cols_tile, blocks_tile)):
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
        row = _rows(builder, unit, name, change, tile)
        unit.compute.append(changed(builder, unit, place, change, (base, moved, row)))
        base = moved
    unit.compute.append(store_box(config, target, box, base, index, tile))
    builder.units.append(unit)


def _rows(builder: Builder, unit: Unit, name: str, change: Change, tile: int) -> int:
    """First parameter row of a change, loaded if need be; 0 where it has none."""
    if change.requantize is None:
        return 0
    chunk = shared_rows(change.requantize, builder.config.lanes, name)
    return builder.load_params((unit.layer, chunk), chunk, unit, tile)


def changed(
    builder: Builder, unit: Unit, place: Place, change: Change, bases: tuple[int, int, int]
) -> Step:
    """The step of a change; `bases` are source, target and the row of shared parameters."""
    if change.table is not None:
        words = change.table.astype("<i4").tobytes()
        lut = builder.load_table(words, words, unit, place.tile)
        return looked_up(builder, place, bases[0], bases[1], lut)
    if change.requantize is None:
        return clamped(builder, place, bases[0], bases[1], -128, 127)
    return requantized(builder, place, bases, change.zero_point, change.requantize)
