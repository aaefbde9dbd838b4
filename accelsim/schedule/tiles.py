"""Tiles of a layer whose outputs are a grid: how large they are, and where they lie.

What comes in: a view that is written, a region of windows, the rows of a slot. What goes out: tile
sizes and boxes. It must not know what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from accelsim.schedule.counting import Region
from accelsim.schedule.limits import MAX_COUNT, MAX_KERNEL, largest_tile
from accelsim.schedule.view import Box, View, spans
from accelsim.schedule.window import tile_sizes

Tiling = tuple[int, int, int]  # rows, columns and blocks


def boxes(target: View, tiling: Tiling) -> Iterator[Box]:
    """Tiles of a view, in the order in which they are written."""
    images, height, width = target.shape
    rows, cols, blocks = tiling
    places = (range(images), spans(height, rows), spans(width, cols), spans(target.blocks, blocks))
    return (Box(*place) for place in product(*places))


def window_tiling(region: Region, inputs: int, outputs: int, most_blocks: int) -> Tiling | None:
    """As many blocks, then columns, then rows as fit; None where one window does not fit.

    `inputs` and `outputs` are the rows of the slots, `most_blocks` those of a tile.
    """
    pool, rows, cols = region.pool, region.rows, region.cols
    if max(pool.kernel) > MAX_KERNEL:
        return None
    for blocks in tile_sizes(region.target.blocks):
        if blocks > most_blocks:
            continue
        for w in tile_sizes(cols.out):
            in_w = cols.longest(w, pool.kernel[1])
            for h in tile_sizes(rows.out):
                in_h = rows.longest(h, pool.kernel[0])
                if (
                    in_h * in_w * blocks <= inputs
                    and h * w * blocks <= outputs
                    and max(in_h, in_w) <= MAX_COUNT
                    and h <= largest_tile(rows)
                    and w <= largest_tile(cols)
                ):
                    return h, w, blocks
    return None
