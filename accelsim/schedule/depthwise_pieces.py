"""Pieces of a depthwise convolution: outputs that are computed, drained and stored together.

What comes in: a shape and sizes. What goes out: pieces in order, each with the input that it adds
to its buffer. Small pieces at both ends shorten what nothing overlaps: the first load and the last
store. It must not know cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from accelsim.schedule.conv_tiling import ConvShape
from accelsim.schedule.view import Box, Span, spans
from accelsim.spec.config import Config

SMALL = 6  # sizes at the ends up to this one are all tried


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
    """Outputs that are stored together, the instructions that they take, and their input."""

    out: Box
    parts: tuple[Box, ...]  # each fits into an accumulator bank
    buffer: Box  # input in one slot, of this piece and others behind one another
    added: Span  # input rows that this piece loads
    constants: Span  # channel blocks whose weights and parameters are loaded together


def pieces(shape: ConvShape, sizes: Sizes, ends: Ends, config: Config) -> Iterator[Piece]:
    """All pieces, blocks outermost so that weights stay."""
    groups = ramp(shape.out_blocks, sizes.blocks, ends.first[1], ends.last[1])
    columns = spans(shape.cols.out, sizes.cols)
    places = [(g, image, c) for g in groups for image in range(shape.images) for c in columns]
    slot = sizes.banks * config.act_bank_rows // 2
    for number, (group, image, cols) in enumerate(places):
        first = sizes.rows if number else ends.first[0]
        last = sizes.rows if number < len(places) - 1 else ends.last[0]
        outs = [
            Box(image, rows, cols, group) for rows in ramp(shape.rows.out, sizes.rows, first, last)
        ]
        for buffer, shared in _buffers(shape, outs, slot):
            loaded = buffer.rows[0]
            for out in shared:
                start, end = input_box(shape, out).rows
                added = (max(start, loaded), max(end, loaded))
                loaded = added[1]
                yield Piece(out, parts(out, config), buffer, added, group)


def input_box(shape: ConvShape, out: Box) -> Box:
    """The input that a box of outputs needs."""
    kernel_h, kernel_w = shape.kernel
    rows = shape.rows.needs(out.rows, (0, kernel_h))
    cols = shape.cols.needs(out.cols, (0, kernel_w))
    return Box(out.image, rows, cols, out.blocks)


def parts(out: Box, config: Config) -> tuple[Box, ...]:
    """Groups of blocks that fit into an accumulator bank."""
    height, width, blocks = out.shape
    most = min(blocks, max(1, config.acc_rows // (height * width)))
    even = -(-blocks // -(-blocks // most))
    first = out.blocks[0]
    return tuple(replace(out, blocks=(first + a, first + b)) for a, b in spans(blocks, even))


def end_sizes(size: int) -> list[int]:
    """Sizes at an end that are worth a try: all small ones, else halves."""
    found = [size]
    while size > SMALL:
        size = -(-size // 2)
        found.append(size)
    return found + list(range(size - 1, 0, -1))


def ramp(total: int, most: int, first: int, last: int) -> list[Span]:
    """Spans of at most `most`, whose sizes double from `first` on and halve to `last`."""
    up, down = _doubling(first, most), _doubling(last, most)
    while sum(up) + sum(down) > total and (up or down):
        (up if sum(up) >= sum(down) else down).pop()
    rest = total - sum(up) - sum(down)
    sizes = list(up)
    if rest:
        count = -(-rest // most)
        sizes += [rest // count + (i < rest % count) for i in range(count)]
    sizes += reversed(down)
    return list(pairwise(sum(sizes[:i]) for i in range(len(sizes) + 1)))


def _buffers(shape: ConvShape, outs: list[Box], slot: int) -> Iterator[tuple[Box, list[Box]]]:
    """Input boxes of as many output boxes in a row as fit into a slot, and these boxes."""
    buffer, shared = input_box(shape, outs[0]), outs[:1]
    for out in outs[1:]:
        longer = replace(buffer, rows=(buffer.rows[0], input_box(shape, out).rows[1]))
        if longer.size <= slot:
            buffer, shared = longer, [*shared, out]
        else:
            yield buffer, shared
            buffer, shared = input_box(shape, out), [out]
    yield buffer, shared


def _doubling(first: int, most: int) -> list[int]:
    sizes = []
    while first < most:
        sizes.append(first)
        first *= 2
    return sizes
