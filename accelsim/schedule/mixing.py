"""One channel block whose lanes come from several places: a sum of products with 0/1 matrices.

What comes in: for each lane of an output block a channel of a view. What goes out: units appended
to the builder. Exact, since one summand of each sum is not 0 and the last multiplier is 1; values
are requantized or looked up before they meet, so every source has levels of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Requantize
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.copying import Change, changed
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.parameters import end_values, parameter_rows, row_count, shared_rows
from accelsim.schedule.pointwise import Place
from accelsim.schedule.step import make_step
from accelsim.schedule.view import Box, Span, View, dense, load_box, merged, spans, store_box, tail

MOST_BLOCKS = 8  # input blocks of one product
UNCHANGED = Requantize(np.ones(1, np.float32), 0, -128, 127)


@dataclass(frozen=True, slots=True)
class Source:
    """Channels of one view and the lanes that they go to."""

    view: View
    channels: NDArray[np.int64]
    lanes: NDArray[np.int64]
    change: Change


@dataclass(frozen=True, slots=True)
class Lanes:
    """All sources of one output block."""

    sources: tuple[Source, ...]
    empty: NDArray[np.bool_]  # (valid lanes,) those that are filled


@dataclass(frozen=True, slots=True)
class _Part:
    """Neighbouring input blocks of one source."""

    source: Source
    view: View
    blocks: Span


def mix(
    builder: Builder, index: int, name: str, target: View, lanes: Lanes, fill: int, tile: int
) -> int:
    """Units of one output block, tiles numbered from `tile`; the number after the last one."""
    views = merged(target, *(s.view for s in lanes.sources))
    target = views[0]
    parts = [
        _Part(source, view, blocks)
        for source, view in zip(lanes.sources, views[1:], strict=True)
        for blocks in _runs(builder, source)
    ]
    widest = max(p.blocks[1] - p.blocks[0] for p in parts)
    pixels = min(builder.inputs.size // widest, builder.acc.size, MAX_COUNT)
    images, height, width = target.shape
    cols_tile = min(width, pixels)
    rows_tile = min(height, max(1, pixels // cols_tile))
    bias = np.where(lanes.empty, fill, 0).astype(np.int32)
    ends = parameter_rows(bias, UNCHANGED, (0, 1), builder.config.lanes, name)
    for image in range(images):
        for rows in spans(height, rows_tile):
            for cols in spans(width, cols_tile):
                box = Box(image, rows, cols, (0, 1))
                _tile(builder, index, name, tile, target, parts, box, ends)
                tile += 1
    return tile


def _runs(builder: Builder, source: Source) -> list[Span]:
    """Input blocks that a source needs, neighbours together."""
    lanes = builder.config.lanes
    most = min(MOST_BLOCKS, builder.weights.size // lanes, builder.inputs.size)
    result: list[Span] = []
    for block in np.unique(source.channels // lanes).tolist():
        if result and result[-1][1] == block and block - result[-1][0] < most:
            result[-1] = (result[-1][0], block + 1)
        else:
            result.append((block, block + 1))
    return result


def _tile(
    builder: Builder,
    index: int,
    name: str,
    tile: int,
    target: View,
    parts: list[_Part],
    box: Box,
    ends: bytes,
) -> None:
    """A unit for each part; the last one drains and stores."""
    config = builder.config
    bank, _ = builder.acc.take(None)
    for number, part in enumerate(parts):
        unit = Unit(index)
        change = part.source.change
        chunk, requantize = ends, change.requantize
        if requantize is not None:
            chunk += shared_rows(requantize, config.lanes, name)
        par_base = builder.load_params((index, chunk), chunk, unit, tile)
        piece = Box(box.image, box.rows, box.cols, part.blocks)
        base, _ = builder.inputs.take(None)
        unit.inputs.append(load_box(config, part.view, piece, base, index, tile))
        in_tail = tail(part.view.channels, part.blocks, config.lanes)
        if requantize is not None or change.table is not None:
            moved, _ = builder.outputs.take(None)
            place = Place(piece.shape, in_tail, index, tile)
            row = par_base + row_count(UNCHANGED)
            unit.compute.append(changed(builder, unit, place, change, (base, moved, row)))
            base = moved
        values = _product(builder, unit, tile, part, target.channels) | {
            "in_base": base,
            "in_h": piece.shape[0],
            "in_w": piece.shape[1],
            **dense("in", piece.shape),
            "out_h": piece.shape[0],
            "out_w": piece.shape[1],
            "in_blocks": piece.shape[2],
            "in_tail": in_tail,
            "acc_bank": bank,
            "accumulate": int(number > 0),
        }
        unit.compute.append(make_step(config, "conv", values, index, tile))
        if number == len(parts) - 1:
            dst_base, _ = builder.outputs.take(None)
            drain = {
                "acc_bank": bank,
                "out_h": box.shape[0],
                "out_w": box.shape[1],
                "tail": target.channels,
                "dst_base": dst_base,
                **dense("dst", box.shape),
                "par_base": par_base,
                **end_values(UNCHANGED),
            }
            unit.compute.append(make_step(config, "drain", drain, index, tile))
            unit.compute.append(store_box(config, target, box, dst_base, index, tile))
        builder.units.append(unit)


def _product(builder: Builder, unit: Unit, tile: int, part: _Part, out_tail: int) -> dict[str, int]:
    """Load the 0/1 matrix of a part if need be; fields that name it."""
    lanes, source = builder.config.lanes, part.source
    first, last = part.blocks
    matrix = np.zeros(((last - first) * lanes, lanes), np.int8)
    inside = (source.channels >= first * lanes) & (source.channels < last * lanes)
    matrix[source.channels[inside] - first * lanes, source.lanes[inside]] = 1
    chunk = matrix.tobytes()
    base, missing = builder.weights.take((unit.layer, chunk))
    if missing:
        unit.weights.append(builder.load_constant(chunk, 1, base, unit.layer, tile))
    return {"wgt_base": base, "out_tail": out_tail}
