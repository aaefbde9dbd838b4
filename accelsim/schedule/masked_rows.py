"""Softmax of the elements of a row that a mask keeps.

What comes in: scores, a mask and a target over the same pixels, and the tables of a softmax. What
goes out: units appended to the builder. Of each tile:

1. the mask becomes 127 where it keeps an element, and -128 elsewhere;
2. the lower of score and mask; its largest element in a row is that of those that are kept;
3. a row's largest element: over all blocks but the last lane by lane, then the lanes of that and of
   the last block side by side, by products with 0/1 matrices, and the maximum of these;
4. scores minus that, so that the largest one is 127 and what the mask hides saturates;
5. once more the lower of that and the mask; then the softmax, and perhaps its levels.

It must not know which layer wants them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Requantize, Step
from accelsim.errors import ModelError
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.elementwise import Operand
from accelsim.schedule.limits import MAX_COUNT, MAX_KERNEL
from accelsim.schedule.mixing import UNCHANGED
from accelsim.schedule.parameters import end_values, row_count, shared_rows
from accelsim.schedule.pointwise import Place, looked_up, requantized
from accelsim.schedule.step import make_step
from accelsim.schedule.view import Box, View, dense, load_box, spans, store_box, tail
from accelsim.spec.arithmetic import ADD_MODES

MOST_BLOCKS = 128  # of a row of a softmax
TOP = 127
KEPT = Requantize(np.full(1, 255, np.float32), TOP, -128, TOP)  # of mask - 127: 127 or -128
_FULL = {"clamp_min": -128, "clamp_max": 127}
_MINIMUM, _SUM_ROWS = 1, 3


@dataclass(frozen=True, slots=True)
class Tables:
    """Words of the exponentials, and of the levels behind them, where there are any."""

    powers: bytes
    levels: bytes | None


@dataclass(frozen=True, slots=True)
class _Job:
    builder: Builder
    index: int
    name: str
    parts: tuple[Operand, Operand, View]
    tables: Tables
    lanes_last: int  # valid lanes of the last block

    @property
    def blocks(self) -> int:
        """Of a row."""
        return self.parts[2].blocks

    @property
    def spread(self) -> int:
        """Lanes that are put side by side."""
        return self.lanes_last + (self.builder.config.lanes if self.blocks > 1 else 0)

    @property
    def pieces(self) -> int:
        """Maxima of which the largest of a row is made, at most."""
        return max(-(-count // MAX_KERNEL) for count in (self.blocks, self.spread))


def schedule_masked_rows(
    builder: Builder, index: int, name: str, parts: tuple[Operand, Operand, View], tables: Tables
) -> dict[str, int]:
    """Append the units. Raises ModelError for a row that no configuration's buffers take."""
    target, config = parts[2], builder.config
    last = tail(target.channels, (0, target.blocks), config.lanes)
    job = _Job(builder, index, name, parts, tables, last)
    room = min(
        builder.inputs.size // (3 * job.blocks),
        builder.outputs.size // (2 * job.blocks + job.spread + job.pieces + 1),
        builder.acc.size // job.spread,
        MAX_COUNT,
    )
    if room < 1 or job.blocks > MOST_BLOCKS or config.lanes**2 > builder.weights.size:
        raise ModelError(
            f"layer {name}: a row of {target.channels} channels under a mask does not fit into the "
            f"buffers of configuration {config.name}; use shorter rows"
        )
    images, height, width = target.shape
    cols_tile = min(width, room)
    rows_tile = min(height, max(1, room // cols_tile))
    boxes = [
        Box(n, r, c, (0, target.blocks))
        for n in range(images)
        for r in spans(height, rows_tile)
        for c in spans(width, cols_tile)
    ]
    for tile, box in enumerate(boxes):
        _tile(job, tile, box)
    splits = -(-height // rows_tile) * -(-width // cols_tile)
    return {"tiles": len(boxes), "row_splits": splits, "out_channel_splits": 1}


def _tile(job: _Job, tile: int, box: Box) -> None:
    builder, index, config = job.builder, job.index, job.builder.config
    scores, mask, target = job.parts
    unit = Unit(index)
    pixels, blocks = box.shape[0] * box.shape[1], job.blocks
    base, _ = builder.inputs.take(None)
    third = builder.inputs.size // 3
    unit.inputs.append(load_box(config, scores.view, scores.box(box), base, index, tile))
    own = mask.box(box)
    unit.inputs.append(load_box(config, mask.view, own, base + third, index, tile))
    chunk = shared_rows(UNCHANGED, config.lanes, job.name)
    chunk += np.ones((_SUM_ROWS, config.lanes), "<f4").tobytes()
    chunk += shared_rows(KEPT, config.lanes, job.name)
    par = builder.load_params((index, chunk), chunk, unit, tile)
    unit.fills |= job.tables.levels is not None
    sums = par + row_count(UNCHANGED)
    low, _ = builder.outputs.take(None)
    moved = low + pixels * blocks
    spread = moved + pixels * blocks
    largest = spread + pixels * job.spread

    kept = base + 2 * third
    place = Place(own.shape, job.lanes_last, index, tile)
    bases = (base + third, kept, sums + _SUM_ROWS)
    unit.compute.append(requantized(builder, place, bases, TOP, KEPT))
    first = scores.fields("a", base, box)
    hidden = mask.fields("b", kept, box)
    unit.compute.append(_lower(job, tile, box, first | hidden, low, par))
    unit.compute += _largest(job, unit, tile, pixels, (low, spread, largest), par)
    row = {"b_base": largest, **dense("b", (*box.shape[:2], 1)), "b_block_stride": 0, "b_scalar": 1}
    values = {
        **_result(job, box, moved),
        **first,
        **row,
        "mode": ADD_MODES.index("fp32"),
        "subtract": 1,
        "par_base": sums,
        "zero_point": TOP,
        **_FULL,
    }
    unit.compute.append(make_step(config, "add", values, index, tile))
    again = {"a_base": moved, **dense("a", box.shape)}
    unit.compute.append(_lower(job, tile, box, again | hidden, low, par))
    lut = builder.load_table((index,), job.tables.powers, unit, tile)
    values = {"in_base": low, **dense("in", box.shape), **_result(job, box, moved), "lut": lut}
    unit.compute.append(make_step(config, "softmax", values, index, tile))
    if job.tables.levels is not None:
        place = Place(box.shape, job.lanes_last, index, tile)
        lut = builder.load_table(job.tables.levels, job.tables.levels, unit, tile)
        unit.compute.append(looked_up(builder, place, moved, low, lut))
        moved = low
    unit.compute.append(store_box(config, target, box, moved, index, tile))
    builder.units.append(unit)


def _result(job: _Job, box: Box, base: int) -> dict[str, int]:
    """Where a tile of whole rows is written."""
    height, width, blocks = box.shape
    sizes = {"out_h": height, "out_w": width, "blocks": blocks, "tail": job.lanes_last}
    return {**sizes, "dst_base": base, **dense("dst", box.shape)}


def _lower(
    job: _Job, tile: int, box: Box, operands: dict[str, int], base: int, par_base: int
) -> Step:
    """The lower of two operands, level by level."""
    values = {
        **_result(job, box, base),
        **operands,
        "kind": _MINIMUM,
        "par_base": par_base,
        **end_values(UNCHANGED),
    }
    return make_step(job.builder.config, "binary", values, job.index, tile)


def _largest(
    job: _Job, unit: Unit, tile: int, pixels: int, bases: tuple[int, int, int], par_base: int
) -> list[Step]:
    """The largest element of each row into lane 0 of a row for each pixel.

    `bases`: the rows, the lanes side by side, and the result, with room for pieces behind it.
    """
    builder, config, lanes = job.builder, job.builder.config, job.builder.config.lanes
    low, spread, largest = bases
    bank, _ = builder.acc.take(None)
    matrix = np.zeros((lanes, lanes, lanes), np.int8)
    matrix[np.arange(lanes), np.arange(lanes), 0] = 1  # output block k has lane k in its lane 0
    chunk = matrix.tobytes()
    weights, missing = builder.weights.take((unit.layer, chunk))
    if missing:
        unit.weights.append(builder.load_constant(chunk, 1, weights, unit.layer, tile))
    steps: list[Step] = []
    sources = [(low + job.blocks - 1, job.blocks, job.lanes_last)]
    if job.blocks > 1:
        steps += _maxima(job, tile, pixels, (low, job.blocks, job.blocks - 1, lanes), largest)
        sources.insert(0, (largest, 1, lanes))
    row = 0
    for base, stride, valid in sources:
        values = {
            "in_base": base,
            "in_h": 1,
            "in_w": pixels,
            "in_col_stride": stride,
            "out_h": 1,
            "out_w": pixels,
            "out_blocks": valid,
            "in_tail": valid,
            "out_tail": 1,
            "wgt_base": weights,
            "acc_bank": bank,
            "acc_base": row,
        }
        steps.append(make_step(config, "conv", values, job.index, tile))
        row += valid * pixels
    drain = {
        "acc_bank": bank,
        "out_h": 1,
        "out_w": pixels,
        "blocks": job.spread,
        "tail": 1,
        "dst_base": spread,
        **dense("dst", (1, pixels, job.spread)),
        "par_base": par_base,
        **end_values(UNCHANGED),
    }
    steps.append(make_step(config, "drain", drain, job.index, tile))
    beside = (spread, job.spread, job.spread, 1)
    return [*steps, *_maxima(job, tile, pixels, beside, largest)]


def _maxima(
    job: _Job, tile: int, pixels: int, source: tuple[int, int, int, int], base: int
) -> list[Step]:
    """The maximum of each pixel's first blocks, lane by lane, into a row for each pixel.

    `source`: first row, rows from pixel to pixel, how many count, and valid lanes. Maxima of pieces
    go behind the results, and are reduced into them.
    """
    first, apart, count, lanes = source
    pieces = spans(count, MAX_KERNEL)
    alone = len(pieces) == 1
    behind = base + pixels
    steps = []
    for number, (start, end) in enumerate(pieces):
        place = (base, 1) if alone else (behind + number, len(pieces))
        steps.append(_window(job, tile, pixels, (first + start, apart, end - start, lanes), place))
    if not alone:
        whole = (behind, len(pieces), len(pieces), lanes)
        steps.append(_window(job, tile, pixels, whole, (base, 1)))
    return steps


def _window(
    job: _Job,
    tile: int,
    pixels: int,
    source: tuple[int, int, int, int],
    place: tuple[int, int],
) -> Step:
    first, apart, count, lanes = source
    values = {
        "in_base": first,
        "in_h": count,
        "in_w": pixels,
        "in_row_stride": 1,
        "in_col_stride": apart,
        "out_h": 1,
        "out_w": pixels,
        "kernel_h": count,
        "blocks": 1,
        "tail": lanes,
        "dst_base": place[0],
        "dst_col_stride": place[1],
        **_FULL,
    }
    return make_step(job.builder.config, "pool", values, job.index, tile)
