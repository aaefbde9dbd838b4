"""Choice of the pieces of a depthwise convolution: what fits, and what is estimated to be fastest.

What comes in: a shape, its views and a configuration. What goes out: a `Plan`: pieces in order, all
with the whole kernel. Small pieces at both ends shorten what nothing overlaps: the first load and
the last store. It must not know values of weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from accelsim.schedule.conv_tiling import ConvShape
from accelsim.schedule.limits import MAX_COUNT, largest_kernel, largest_tile
from accelsim.schedule.pipeline import (
    Work,
    instruction_beats,
    load_cycles,
    steady_cycles,
    store_cycles,
    total_cycles,
)
from accelsim.schedule.view import Box, Span, View, copy_values, spans
from accelsim.schedule.window import column_groups, tile_sizes
from accelsim.spec.config import DEPTHWISE_TAPS, PAR_BEATS, Config
from accelsim.spec.durations import VECTOR_LATENCY, dwconv_cycles

NARROWEST = 8  # tiles narrower than this part of the widest that fits are not tried
TRIED = 6  # sizes whose ends are tried
FEW_PIECES = 20  # up to it both ends of a layer are tried together
MOST_PIECES = 400  # beyond it the ends of a layer matter little
PREFERENCE_CYCLES = 3  # what one instruction less is worth: simulation time follows their number


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a piece: output rows, columns and blocks; how activation memory is divided.

    Inputs have two slots in the first `banks` banks, outputs `slots` in the others.
    """

    rows: int
    cols: int
    blocks: int
    banks: int
    slots: int = 2


@dataclass(frozen=True, slots=True)
class Ends:
    """Rows and blocks of the first and of the last piece; sizes double from there."""

    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Outputs that share a load and a store, the instructions that they take, and constants."""

    out: Box
    parts: tuple[Box, ...]  # each fits into an accumulator bank
    constants: Span  # channel blocks whose weights and parameters are loaded together


@dataclass(frozen=True, slots=True)
class Plan:
    """Pieces in order, and banks of activation memory for inputs."""

    pieces: tuple[Piece, ...]
    sizes: Sizes


def choose_plan(shape: ConvShape, views: tuple[View, View], config: Config) -> Plan | None:
    """The plan with the smallest estimate; None where the kernel needs more than one pass."""
    if any(
        taps > largest_kernel(axis)
        for taps, axis in zip(shape.kernel, (shape.rows, shape.cols), strict=True)
    ):
        return None
    maker = _Maker(shape, views, config)
    ranked = sorted(_sizes(shape, config), key=lambda s: (maker.steady(s), s.banks, -s.slots))[
        :TRIED
    ]
    plans = [maker.best(sizes) for sizes in ranked]
    return min(plans, key=lambda plan: plan[0])[1] if plans else None


def _sizes(shape: ConvShape, config: Config) -> Iterator[Sizes]:
    """Sizes that fit into buffers and fields."""
    rows_axis, cols_axis = shape.rows, shape.cols
    most = min(MAX_COUNT, config.par_rows // 2 // max(shape.par_rows, 1))
    widest = 0
    for cols in tile_sizes(cols_axis.out):
        if cols > largest_tile(cols_axis) or cols * NARROWEST < widest:
            continue
        in_w = cols_axis.longest(cols, shape.kernel[1])
        groups = max(
            column_groups(shape.kernel[1], c, cols_axis)[1]
            for c in (cols, (cols_axis.out - 1) % cols + 1)
        )
        most_weights = config.wgt_rows // 2 // (shape.kernel[0] * groups * DEPTHWISE_TAPS)
        for rows in tile_sizes(rows_axis.out):
            in_h = rows_axis.longest(rows, shape.kernel[0])
            fields = max(in_h, in_w) <= MAX_COUNT and rows <= largest_tile(rows_axis)
            if not fields or rows * cols > config.acc_rows:
                continue
            for blocks in tile_sizes(shape.out_blocks):
                needed = (in_h * in_w * blocks, rows * cols * blocks)
                found = _arrangements(needed, config)
                if found and blocks <= min(most, most_weights):
                    widest = max(widest, cols)
                    yield from (Sizes(rows, cols, blocks, *how) for how in found)


def _arrangements(needed: tuple[int, int], config: Config) -> list[tuple[int, int]]:
    """(banks for inputs, slots for outputs) in which a piece fits: the plain one if it does."""
    half, more = config.act_banks // 2, config.act_banks * 3 // 4
    fits = [
        (banks, slots)
        for banks, slots in ((half, 2), (more, 2), (more, 1))
        if needed[0] <= banks * config.act_bank_rows // 2
        and needed[1] <= (config.act_banks - banks) * config.act_bank_rows // slots
    ]
    return fits[:1]


@dataclass(slots=True)
class _Maker:
    """Plans of one layer and their estimates."""

    shape: ConvShape
    views: tuple[View, View]
    config: Config
    works: dict[Hashable, Work] = field(default_factory=dict)

    def steady(self, sizes: Sizes) -> float:
        """Estimate for a layer of nothing but pieces of this size."""
        shape, cycles, products = self.shape, 0.0, 0
        counts = [
            Counter(stop - start for start, stop in spans(total, size))
            for total, size in (
                (shape.rows.out, sizes.rows),
                (shape.cols.out, sizes.cols),
                (shape.out_blocks, sizes.blocks),
            )
        ]
        last = None
        for combination in product(*(count.items() for count in counts)):
            (height, rows), (width, cols), (blocks, groups) = combination
            # Not at an edge where there is a choice: most pieces need their whole border.
            top, left = (
                max(min(1, axis.out - size), 0)
                for axis, size in ((shape.rows, height), (shape.cols, width))
            )
            box = Box(0, (top, top + height), (left, left + width), (0, blocks))
            work = self._work(Piece(box, self._parts(box), (0, 0)))
            last = last or work
            products = len(work.products)
            cost = steady_cycles(work, sizes.slots) + PREFERENCE_CYCLES * (2 + 2 * products)
            cycles += shape.images * rows * cols * groups * cost
        assert last is not None
        return cycles + last.load + last.store + sum(counts[2].values()) * 80

    def best(self, sizes: Sizes) -> tuple[int, Plan]:
        """The fastest plan of this size, its ends chosen one after the other."""
        plain = (sizes.rows, sizes.blocks)
        best = self._plan(sizes, Ends(plain, plain))
        if len(best[1].pieces) > MOST_PIECES:
            return best
        ends = list(product(_shorter(sizes.rows), _shorter(sizes.blocks)))
        if len(best[1].pieces) <= FEW_PIECES:
            tried = [self._plan(sizes, Ends(first, last)) for first, last in product(ends, ends)]
            return min(tried, key=lambda plan: plan[0])
        last = min(ends, key=lambda last: self._plan(sizes, Ends(plain, last))[0])
        first = min(ends, key=lambda first: self._plan(sizes, Ends(first, last))[0])
        return self._plan(sizes, Ends(first, last))

    def _plan(self, sizes: Sizes, ends: Ends) -> tuple[int, Plan]:
        """A plan and its estimate."""
        pieces = tuple(self._pieces(sizes, ends))
        works = [
            self._work(piece, index == 0 or piece.constants != pieces[index - 1].constants)
            for index, piece in enumerate(pieces)
        ]
        count = sum(2 + 2 * len(w.products) + len(w.constants) for w in works)
        return total_cycles(works, sizes.slots) + PREFERENCE_CYCLES * count, Plan(pieces, sizes)

    def _pieces(self, sizes: Sizes, ends: Ends) -> Iterator[Piece]:
        """Blocks outermost, so that weights stay; small pieces first and last."""
        shape = self.shape
        groups = _ramp(shape.out_blocks, sizes.blocks, ends.first[1], ends.last[1])
        columns = spans(shape.cols.out, sizes.cols)
        for image_group in range(len(groups) * shape.images):
            group, image = groups[image_group // shape.images], image_group % shape.images
            for number, cols in enumerate(columns):
                first = sizes.rows if image_group or number else ends.first[0]
                at_end = image_group == len(groups) * shape.images - 1
                last = ends.last[0] if at_end and number == len(columns) - 1 else sizes.rows
                for rows in _ramp(shape.rows.out, sizes.rows, first, last):
                    box = Box(image, rows, cols, group)
                    yield Piece(box, self._parts(box), group)

    def _parts(self, box: Box) -> tuple[Box, ...]:
        """Groups of blocks that fit into an accumulator bank."""
        height, width, blocks = box.shape
        most = min(blocks, max(1, self.config.acc_rows // (height * width)))
        even = -(-blocks // -(-blocks // most))
        first = box.blocks[0]
        return tuple(replace(box, blocks=(first + a, first + b)) for a, b in spans(blocks, even))

    def _work(self, piece: Piece, loads: bool = False) -> Work:
        """The work of a piece, which its shape decides."""
        constants = piece.constants[1] - piece.constants[0] if loads else 0
        key = (input_box(self.shape, piece.out).shape, piece.out.shape, constants)
        if key not in self.works:
            self.works[key] = self._measured(piece, constants)
        return self.works[key]

    def _measured(self, piece: Piece, count: int) -> Work:
        config, shape, out = self.config, self.shape, piece.out
        source, target = self.views
        taken = copy_values(source, input_box(shape, out), 0)
        given = copy_values(target, out, 0, stores_rows(target, out, config))
        products, drains = [], []
        for part in piece.parts:
            height, width, blocks = part.shape
            wide, groups = column_groups(shape.kernel[1], width, shape.cols)
            values = {
                "blocks": blocks,
                "kernel_h": shape.kernel[0],
                "groups_w": groups,
                "wide": wide,
                "out_h": height,
                "out_w": width,
                "stride_w": shape.cols.stride,
            }
            products.append(dwconv_cycles(values, config))
            drains.append(blocks * (height * width + shape.par_rows) + VECTOR_LATENCY)
        constants: tuple[int, ...] = ()
        if count:
            _, groups = column_groups(shape.kernel[1], out.shape[1], shape.cols)
            weights = count * shape.kernel[0] * groups * DEPTHWISE_TAPS
            beats = (weights, count * shape.par_rows * PAR_BEATS)
            constants = tuple(load_cycles({"count0": b}, config) for b in beats)
        instructions = 2 + len(constants) + 2 * len(products)
        in_beats, out_beats = (v["count0"] * v["count1"] * v["count2"] for v in (taken, given))
        others = out_beats + instruction_beats(instructions, config)
        return Work(
            constants,
            load_cycles(taken, config),
            tuple(products),
            tuple(drains),
            store_cycles(given, config),
            in_beats,
            others,
        )


def input_box(shape: ConvShape, out: Box) -> Box:
    """The input that a box of outputs needs."""
    kernel_h, kernel_w = shape.kernel
    rows = shape.rows.needs(out.rows, (0, kernel_h))
    cols = shape.cols.needs(out.cols, (0, kernel_w))
    return Box(out.image, rows, cols, out.blocks)


def stores_rows(target: View, out: Box, config: Config) -> bool:
    """Whether a store is faster if each row is a run of its own: the last burst is shorter."""
    together, apart = (
        store_cycles(copy_values(target, out, 0, rows), config) for rows in (False, True)
    )
    return apart < together


def _shorter(size: int) -> list[int]:
    """Sizes at an end that are tried: halves down to one."""
    found = [size]
    while size > 1:
        size = -(-size // 2)
        found.append(size)
    return found


def _ramp(total: int, most: int, first: int, last: int) -> list[Span]:
    """Spans of at most `most`, whose sizes double from `first` on and halve to `last`."""
    up, down = _doubling(first, most), _doubling(last, most)
    while sum(up) + sum(down) > total and (up or down):
        (up if sum(up) >= sum(down) else down).pop()
    rest = total - sum(up) - sum(down)
    sizes = list(up)
    if rest:
        parts = -(-rest // most)
        sizes += [rest // parts + (i < rest % parts) for i in range(parts)]
    sizes += reversed(down)
    starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    return list(pairwise(starts))


def _doubling(first: int, most: int) -> list[int]:
    sizes = []
    while first < most:
        sizes.append(first)
        first *= 2
    return sizes
