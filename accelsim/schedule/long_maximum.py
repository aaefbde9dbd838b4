"""Maxima over windows beyond one instruction or buffer: maxima of pieces, then their maximum.

What comes in: a region of windows. What goes out: units appended to the builder, one a
piece of the window. Partial maxima are gathered in an output slot; a full slot is reduced into the
first place of the other one. Tables are looked up in front of the pieces and behind the
last maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from accelsim.errors import ModelError
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.counting import Region
from accelsim.schedule.limits import MAX_COUNT, MAX_KERNEL
from accelsim.schedule.pointwise import Place, looked_up
from accelsim.schedule.step import make_step
from accelsim.schedule.view import Box, Span, dense, load_box, spans, store_box, tail


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables (256 words) that are looked up before a maximum and after it, where there are any."""

    before: bytes | None = None
    after: bytes | None = None

    def room(self, builder: Builder) -> tuple[int, int]:
        """Rows of an input and of an output slot that what is looked up leaves."""
        inputs, outputs = builder.inputs.size, builder.outputs.size
        return (
            inputs if self.before is None else inputs // 2,
            outputs if self.after is None else outputs // 2,
        )

    def load(self, builder: Builder, unit: Unit, tile: int) -> tuple[int | None, int | None]:
        """Numbers of both tables, which are loaded for a unit if need be."""
        chunks = [self.before, self.after]
        unit.fills = None not in chunks and self.before != self.after
        before, after = (
            None if chunk is None else builder.load_table(chunk, chunk, unit, tile)
            for chunk in chunks
        )
        return before, after


def schedule_long_maximum(
    builder: Builder, index: int, region: Region, tile: int, tables: Tables | None = None
) -> int:
    """Units of every output pixel, tiles numbered from `tile`; the number after the last one."""
    tables = tables or Tables()
    slot, kernel, target = tables.room(builder)[0], region.pool.kernel, region.target
    width = min(kernel[1], MAX_KERNEL, slot)
    height = min(kernel[0], MAX_KERNEL, slot // width)
    # Two places of an output slot are the least with which maxima can be gathered.
    blocks = min(target.blocks, slot // (width * height), builder.outputs.size // 2, MAX_COUNT)
    if blocks < 1:
        raise ModelError(
            f"layer {builder.layer}: a window of {kernel[0]}×{kernel[1]} does not fit into the "
            f"buffers of configuration {builder.config.name}; enlarge act_bank_rows"
        )
    pieces = list(product(spans(kernel[0], height), spans(kernel[1], width)))
    images, out_h, out_w = target.shape
    for image, row, col in product(range(images), range(out_h), range(out_w)):
        for group in spans(target.blocks, blocks):
            box = Box(image, (row, row + 1), (col, col + 1), group)
            _pixel(builder, index, region, tile, box, pieces, tables)
            tile += 1
    return tile


def _pixel(
    builder: Builder,
    index: int,
    region: Region,
    tile: int,
    box: Box,
    pieces: list[tuple[Span, Span]],
    tables: Tables,
) -> None:
    config, blocks = builder.config, box.shape[2]
    places = min(builder.outputs.size // blocks, MAX_KERNEL)
    gathered, _ = builder.outputs.take(None)
    count = 0
    lanes = tail(region.target.channels, box.blocks, config.lanes)
    for number, kernel in enumerate(pieces, 1):
        unit = Unit(index)
        before, after = tables.load(builder, unit, tile)
        fields = _load(builder, unit, region, tile, box, kernel)
        if before is not None:
            shape = (fields["in_h"], fields["in_w"], blocks)
            place, base = Place(shape, lanes, index, tile), fields["in_base"]
            fields["in_base"] = base + builder.inputs.size // 2
            unit.compute.append(looked_up(builder, place, base, fields["in_base"], before))
        fields |= {"dst_base": gathered + count * blocks, "blocks": blocks, "tail": lanes}
        unit.compute.append(make_step(config, "pool", {**fields, **_ALL}, index, tile))
        count += 1
        last = number == len(pieces)
        if count == places or last:
            reduced, _ = builder.outputs.take(None)
            values = {
                "in_base": gathered,
                "in_h": count,
                "in_w": 1,
                **dense("in", (count, 1, blocks)),
                "kernel_h": count,
                "blocks": blocks,
                "tail": lanes,
                "dst_base": reduced,
                **dense("dst", box.shape),
                **_ALL,
            }
            if last:
                pool = region.pool
                values |= {"clamp_min": pool.clamp_min, "clamp_max": pool.clamp_max}
            unit.compute.append(make_step(config, "pool", values, index, tile))
            gathered, count = reduced, 1
            if last and after is not None:
                place, gathered = Place(box.shape, lanes, index, tile), reduced + blocks
                unit.compute.append(looked_up(builder, place, reduced, gathered, after))
        if last:
            unit.compute.append(store_box(config, region.target, box, gathered, index, tile))
        builder.units.append(unit)


_ALL = {"clamp_min": -128, "clamp_max": 127}


def _load(
    builder: Builder,
    unit: Unit,
    region: Region,
    tile: int,
    box: Box,
    kernel: tuple[Span, Span],
) -> dict[str, int]:
    """Load what a piece of the window covers; fields of its maximum but for the destination."""
    rows, cols = region.rows, region.cols
    piece = Box(
        box.image, rows.needs(box.rows, kernel[0]), cols.needs(box.cols, kernel[1]), box.blocks
    )
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(builder.config, region.source, piece, base, unit.layer, tile))
    return {
        "in_base": base,
        "in_h": piece.shape[0],
        "in_w": piece.shape[1],
        **dense("in", piece.shape),
        "origin_h": rows.origin(box.rows, kernel[0], piece.rows[0]),
        "origin_w": cols.origin(box.cols, kernel[1], piece.cols[0]),
        "kernel_h": kernel[0][1] - kernel[0][0],
        "kernel_w": kernel[1][1] - kernel[1][0],
        **dense("dst", box.shape),
    }
