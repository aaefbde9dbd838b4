"""Pixel by pixel through the vector engine: a copy that clamps or requantizes, and whole rows.

What comes in: where a dense (h, w, blocks) buffer lies on chip, or two views of the same pixels.
What goes out: steps or units. It must not know which operator wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accelsim.artifacts import Requantize, Step
from accelsim.errors import ModelError
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.parameters import end_values
from accelsim.schedule.step import make_step
from accelsim.schedule.tiles import boxes
from accelsim.schedule.view import (
    Box,
    Grid,
    View,
    dense,
    load_box,
    merged,
    store_box,
    tail,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A dense buffer on chip, a layer and a tile: where a pixelwise copy belongs."""

    shape: Grid  # (h, w, blocks)
    tail: int
    layer: int
    tile: int


def clamped(builder: Builder, place: Place, source: int, target: int, low: int, high: int) -> Step:
    """min(max(x, low), high), pad lanes 0."""
    return _pool(builder, place, source, target, {"clamp_min": low, "clamp_max": high})


def requantized(
    builder: Builder,
    place: Place,
    bases: tuple[int, int, int],
    zero_point: int,
    requantize: Requantize,
) -> Step:
    """requantize(x - zero_point); `bases` are source, target and the row of shared parameters."""
    source, target, par_base = bases
    ends = {"sum": 1, "input_zero_point": zero_point, "par_base": par_base, "par_stride": 0}
    return _pool(builder, place, source, target, ends | end_values(requantize))


def looked_up(builder: Builder, place: Place, source: int, target: int, lut: int) -> Step:
    """table[x + 128] of table number `lut`, pad lanes 0."""
    height, width, blocks = place.shape
    values = {
        "in_base": source,
        **dense("in", place.shape),
        "out_h": height,
        "out_w": width,
        "blocks": blocks,
        "tail": place.tail,
        "dst_base": target,
        **dense("dst", place.shape),
        "lut": lut,
    }
    return make_step(builder.config, "lookup", values, place.layer, place.tile)


def _pool(builder: Builder, place: Place, source: int, target: int, ends: dict[str, int]) -> Step:
    height, width, blocks = place.shape
    values = {
        "in_base": source,
        "in_h": height,
        "in_w": width,
        **dense("in", place.shape),
        "out_h": height,
        "out_w": width,
        "blocks": blocks,
        "tail": place.tail,
        "dst_base": target,
        **dense("dst", place.shape),
        **ends,
    }
    return make_step(builder.config, "pool", values, place.layer, place.tile)


def schedule_rows(
    builder: Builder,
    index: int,
    instruction: str,
    views: tuple[View, View],
    prepare: Callable[[Unit, int, Box], dict[str, int]],
    blocks_tile: int,
    levels: bytes | None = None,
) -> dict[str, int]:
    """Units of an instruction that takes pixel by pixel, `blocks_tile` channel blocks at once.

    `prepare` loads what a tile needs besides its pixels and gives the fields of the instruction.
    Results go through the table `levels` (256 words), where there is one.
    """
    config = builder.config
    source, target = merged(*views)
    _, height, width = target.shape
    room = builder.inputs.size if levels is None else _half(builder)
    pixels = min(room // blocks_tile, MAX_COUNT)
    cols_tile = min(width, pixels)
    rows_tile = min(height, max(1, pixels // cols_tile))
    tiles = list(boxes(target, (rows_tile, cols_tile, blocks_tile)))
    for tile, box in enumerate(tiles):
        unit = Unit(index)
        base, _ = builder.inputs.take(None)
        unit.inputs.append(load_box(config, source, box, base, index, tile))
        dst_base, _ = builder.outputs.take(None)
        h, w, blocks = box.shape
        values = {
            "in_base": base,
            **dense("in", box.shape),
            "out_h": h,
            "out_w": w,
            "blocks": blocks,
            "tail": tail(target.channels, box.blocks, config.lanes),
            "dst_base": dst_base,
            **dense("dst", box.shape),
            **prepare(unit, tile, box),
        }
        unit.compute.append(make_step(config, instruction, values, index, tile))
        if levels is not None:
            place = Place(box.shape, values["tail"], index, tile)
            found = dst_base + builder.outputs.size // 2
            lut = builder.load_table(levels, levels, unit, tile)
            unit.compute.append(looked_up(builder, place, dst_base, found, lut))
            dst_base = found
        unit.compute.append(store_box(config, target, box, dst_base, index, tile))
        builder.units.append(unit)
    return {
        "tiles": len(tiles),
        "row_splits": -(-height // rows_tile) * -(-width // cols_tile),
        "out_channel_splits": -(-target.blocks // blocks_tile),
    }


def _half(builder: Builder) -> int:
    """Rows of a tile whose results are looked up: of an input, and of half an output slot."""
    return min(builder.inputs.size, builder.outputs.size // 2)


def check_row(
    builder: Builder, name: str, channels: int, blocks: int, *, looked_up: bool = False
) -> None:
    """Raise ModelError for a row of channels that no instruction takes as one."""
    most = min(128, _half(builder) if looked_up else builder.inputs.size)
    if blocks > most:
        raise ModelError(
            f"layer {name}: a row of {channels} channels exceeds {most * builder.config.lanes}, "
            f"the limit of configuration {builder.config.name}; use shorter rows"
        )
