"""Choice of the pieces of a depthwise convolution: what fits, and what is estimated to be fastest.

What comes in: a shape, its views and a configuration. What goes out: a `Plan`: pieces in order, all
with the whole kernel. It must not know values of weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from accelsim.schedule.conv_tiling import ConvShape
from accelsim.schedule.depthwise_pieces import (
    Ends,
    Piece,
    Sizes,
    end_sizes,
    input_box,
    parts,
    pieces,
)
from accelsim.schedule.depthwise_work import Meter
from accelsim.schedule.limits import MAX_COUNT, largest_kernel, largest_tile
from accelsim.schedule.pipeline import steady_cycles, total_cycles
from accelsim.schedule.view import Box, View, spans
from accelsim.schedule.window import column_groups, tile_sizes
from accelsim.spec.config import DEPTHWISE_TAPS, Config

NARROWEST = 8  # tiles narrower than this part of the widest that fits are not tried
TRIED = 6  # sizes whose ends are tried
MOST_PIECES = 150  # beyond it the ends of a layer matter little
PREFERENCE_CYCLES = 2  # what one instruction less is worth: simulation time follows their number
GROUP_CYCLES = 80  # of the loads of weights and parameters of a group of blocks, about


@dataclass(frozen=True, slots=True)
class Plan:
    """Pieces in order, and what they were cut by."""

    pieces: tuple[Piece, ...]
    sizes: Sizes


def choose_plan(shape: ConvShape, views: tuple[View, View], config: Config) -> Plan | None:
    """The plan with the smallest estimate; None where the kernel needs more than one pass."""
    axes = (shape.rows, shape.cols)
    if any(k > largest_kernel(axis) for k, axis in zip(shape.kernel, axes, strict=True)):
        return None
    meter = Meter(shape, views, config)
    ranked = sorted(
        _sizes(shape, config), key=lambda sizes: (_steady(meter, sizes), sizes.banks, -sizes.slots)
    )
    plans = [_best(meter, sizes) for sizes in ranked[:TRIED]]
    return min(plans, key=lambda plan: plan[0])[1] if plans else None


def _sizes(shape: ConvShape, config: Config) -> Iterator[Sizes]:
    """Sizes that fit into buffers and fields."""
    kernel_h, kernel_w = shape.kernel
    most = min(MAX_COUNT, config.par_rows // 2 // max(shape.par_rows, 1))
    widest = 0
    for cols in tile_sizes(shape.cols.out):
        if cols > largest_tile(shape.cols) or cols * NARROWEST < widest:
            continue
        in_w = shape.cols.longest(cols, kernel_w)
        widths = (cols, (shape.cols.out - 1) % cols + 1)
        groups = max(column_groups(kernel_w, width, shape.cols)[1] for width in widths)
        most_blocks = min(most, config.wgt_rows // 2 // (kernel_h * groups * DEPTHWISE_TAPS))
        for rows in tile_sizes(shape.rows.out):
            in_h = shape.rows.longest(rows, kernel_h)
            fields = max(in_h, in_w) <= MAX_COUNT and rows <= largest_tile(shape.rows)
            if not fields or rows * cols > config.acc_rows:
                continue
            for blocks in tile_sizes(shape.out_blocks):
                needed = (in_h * in_w * blocks, rows * cols * blocks)
                divided = _division(needed, config)
                if divided is not None and blocks <= most_blocks:
                    widest = max(widest, cols)
                    yield Sizes(rows, cols, blocks, *divided)


def _division(needed: tuple[int, int], config: Config) -> tuple[int, int] | None:
    """(banks for inputs, slots for outputs) in which a piece fits, the plain one first."""
    half, more = config.act_banks // 2, config.act_banks * 3 // 4
    for banks, slots in ((half, 2), (more, 2), (more, 1)):
        rest = (config.act_banks - banks) * config.act_bank_rows
        if needed[0] <= banks * config.act_bank_rows // 2 and needed[1] <= rest // slots:
            return banks, slots
    return None


def _steady(meter: Meter, sizes: Sizes) -> float:
    """Estimate for a layer of nothing but pieces of these sizes."""
    shape, cycles = meter.shape, 0.0
    totals = (shape.rows.out, shape.cols.out, shape.out_blocks)
    counts = [
        Counter(stop - start for start, stop in spans(total, size))
        for total, size in zip(totals, (sizes.rows, sizes.cols, sizes.blocks), strict=True)
    ]
    ends: list[int] = []
    for combination in product(*(count.items() for count in counts)):
        (height, rows), (width, cols), (blocks, groups) = combination
        # Not at an edge where there is a choice: most pieces need their whole border.
        top, left = (
            max(min(1, axis.out - size), 0)
            for axis, size in ((shape.rows, height), (shape.cols, width))
        )
        out = Box(0, (top, top + height), (left, left + width), (0, blocks))
        source = input_box(shape, out)
        added = source.rows
        if 2 * source.size <= sizes.banks * meter.config.act_bank_rows // 2:
            # Pieces share buffers, so that only the first one loads rows above its own.
            added = (max(source.rows[0], source.rows[1] - height * shape.rows.stride), added[1])
        work = meter.work(Piece(out, parts(out, meter.config), source, added, (0, 0)), False)
        ends = ends or [work.load, work.store]
        instructions = 2 + 2 * len(work.products)
        cost = steady_cycles(work, sizes.slots) + PREFERENCE_CYCLES * instructions
        cycles += shape.images * rows * cols * groups * cost
    return cycles + sum(ends) + sum(counts[2].values()) * GROUP_CYCLES


def _best(meter: Meter, sizes: Sizes) -> tuple[int, Plan]:
    """The fastest plan of these sizes: each end is chosen for the other one, twice."""
    plain = (sizes.rows, sizes.blocks)
    best = _plan(meter, sizes, Ends(plain, plain))
    if len(best[1].pieces) > MOST_PIECES:
        return best
    sizes_of_ends = list(product(end_sizes(sizes.rows), end_sizes(sizes.blocks)))
    first = last = plain
    for _ in range(2):
        last = min(sizes_of_ends, key=lambda end: _plan(meter, sizes, Ends(first, end))[0])
        first = min(sizes_of_ends, key=lambda end: _plan(meter, sizes, Ends(end, last))[0])
    return _plan(meter, sizes, Ends(first, last))


def _plan(meter: Meter, sizes: Sizes, ends: Ends) -> tuple[int, Plan]:
    """A plan and its estimate."""
    found = tuple(pieces(meter.shape, sizes, ends, meter.config))
    works = meter.works(found)
    count = sum(2 + 2 * len(work.products) + len(work.constants) for work in works)
    cycles = total_cycles(works, sizes.slots) + PREFERENCE_CYCLES * count
    return cycles, Plan(found, sizes)
