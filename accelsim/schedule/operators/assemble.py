"""Tensors put together from pieces: blocks of channels by copies, mixed lanes by 0/1 products.

A channel block that is one whole block of one input is copied by DMA, through the vector engine if
it is requantized. A block whose lanes come from elsewhere is a sum of products with 0/1 matrices
(see `schedule.mixing`). What no piece covers is copied from a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from accelsim.artifacts import Assemble, Layer, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Builder
from accelsim.schedule.cells import Cell, cells
from accelsim.schedule.copying import Change, copy
from accelsim.schedule.mixing import Lanes, Source, mix
from accelsim.schedule.operators import Operator
from accelsim.schedule.view import Span, View, check_strides, seen_views


@dataclass(frozen=True, slots=True)
class Group:
    """Output channel blocks that are filled alike: piece -1 is nothing, -2 several."""

    blocks: Span
    piece: int
    first: int = 0  # first block of the piece's input
    partial: bool = False  # the input's block has further channels: its lanes must become 0


NOTHING, SEVERAL = -1, -2


def schedule_assemble(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one assembly; returns its facts."""
    assemble = layer.compute
    assert isinstance(assemble, Assemble)
    lanes = builder.config.lanes
    places = [tensors[name] for name in (*layer.inputs, layer.output)]
    *sources, target = seen_views(places, assemble, lanes)
    _check(layer.name, assemble, sources, target)
    tiles, found = 0, list(cells(assemble, target.shape))
    for cell in found:
        tiles = _cell(builder, index, layer.name, assemble, (sources, target), cell, tiles)
    return {"tiles": tiles, "cells": len(found)}


def _cell(
    builder: Builder,
    index: int,
    name: str,
    assemble: Assemble,
    views: tuple[list[View], View],
    cell: Cell,
    tile: int,
) -> int:
    """Units of one cell, tiles numbered from `tile`; the number after the last one."""
    sources, whole = views
    lanes = builder.config.lanes
    n, h, w = cell.runs
    shape = (n.count, h.count, w.count)
    target = whole.every((n.first, h.first, w.first), (n.step, h.step, w.step), shape)
    taken = {}
    for i, piece in enumerate(cell.pieces):
        (n0, ns), (h0, hs), (w0, ws) = (run.takes[i] for run in cell.runs)
        view = sources[assemble.pieces[piece].input]
        taken[piece] = view.every((n0, h0, w0), (ns, hs, ws), shape)
    check_strides(name, target, *taken.values())
    for group in _groups(assemble, cell, target, taken, lanes):
        part = target.channel_blocks(group.blocks, lanes)
        if group.piece == NOTHING:
            fill = np.full((1, 1, 1, part.channels), assemble.fill, np.int8)
            constant = builder.constant_view(fill)
            constant = replace(constant, shape=shape, strides=(0, 0, 0))
            tile = copy(builder, index, name, (constant, part), None, tile)
        elif group.piece == SEVERAL:
            for block in range(*group.blocks):
                mixed = _lanes(assemble, cell, taken, block, target.channels, lanes)
                part = target.channel_blocks((block, block + 1), lanes)
                tile = mix(builder, index, name, part, mixed, assemble.fill, tile)
        else:
            p = assemble.pieces[group.piece]
            count = group.blocks[1] - group.blocks[0]
            source = taken[group.piece].channel_blocks((group.first, group.first + count), lanes)
            changed = p.requantize is not None or p.table is not None
            needed = group.partial or changed
            change = Change(p.input_zero_point, p.requantize, p.table)
            tile = copy(builder, index, name, (source, part), change if needed else None, tile)
    return tile


def _owners(assemble: Assemble, cell: Cell, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Piece that gives each output channel (or NOTHING), and the channel of its input."""
    owner, channel = np.full(channels, NOTHING), np.zeros(channels, np.int64)
    for piece in cell.pieces:
        place, take = (np.asarray(a[3]) for a in _indices(assemble, piece))
        owner[place], channel[place] = piece, take
    return owner, channel


def _indices(assemble: Assemble, piece: int) -> tuple[tuple[np.ndarray, ...], ...]:
    return assemble.pieces[piece].place, assemble.pieces[piece].take


def _groups(
    assemble: Assemble, cell: Cell, target: View, taken: dict[int, View], lanes: int
) -> Iterator[Group]:
    """Neighbouring blocks that are filled alike, as one group."""
    owner, channel = _owners(assemble, cell, target.channels)
    last: Group | None = None
    for block in range(target.blocks):
        here = slice(block * lanes, min((block + 1) * lanes, target.channels))
        group = _group(block, owner[here], channel[here], taken, lanes)
        if last is not None and _continues(last, group):
            last = replace(last, blocks=(last.blocks[0], group.blocks[1]), partial=group.partial)
            continue
        if last is not None:
            yield last
        last = group
    assert last is not None
    yield last


def _group(
    block: int, owner: np.ndarray, channel: np.ndarray, taken: dict[int, View], lanes: int
) -> Group:
    """How one block is filled."""
    span, piece, first = (block, block + 1), int(owner[0]), int(channel[0])
    if np.any(owner != piece):
        return Group(span, SEVERAL)
    if piece == NOTHING:
        return Group(span, NOTHING)
    if first % lanes or not np.array_equal(channel, first + np.arange(len(channel))):
        return Group(span, SEVERAL)
    present = min(lanes, taken[piece].channels - first)
    return Group(span, piece, first // lanes, partial=present > len(channel))


def _continues(last: Group, group: Group) -> bool:
    """Whether a block belongs to the group before it."""
    if group.piece < 0 or last.piece < 0:
        return group.piece == last.piece
    same = group.piece == last.piece and group.partial == last.partial
    return same and group.first == last.first + last.blocks[1] - last.blocks[0]


def _lanes(
    assemble: Assemble,
    cell: Cell,
    taken: dict[int, View],
    block: int,
    channels: int,
    lanes: int,
) -> Lanes:
    """Where each lane of one output block comes from."""
    owner, channel = _owners(assemble, cell, channels)
    here = slice(block * lanes, min((block + 1) * lanes, channels))
    sources = []
    for piece in cell.pieces:
        used = np.nonzero(owner[here] == piece)[0]
        if len(used):
            p = assemble.pieces[piece]
            takes = channel[here][used]
            change = Change(p.input_zero_point, p.requantize, p.table)
            sources.append(Source(taken[piece], takes, used, change))
    return Lanes(tuple(sources), np.asarray(owner[here] == NOTHING))


def _check(name: str, assemble: Assemble, sources: list[View], target: View) -> None:
    """Raise ModelError where a piece reaches beyond its input or the output."""
    for piece in assemble.pieces:
        source = sources[piece.input]
        for what, indices, view in (
            ("takes", piece.take, source),
            ("places", piece.place, target),
        ):
            sizes = (*view.shape, view.channels)
            for axis, size in zip(indices, sizes, strict=True):
                if len(axis) and not 0 <= int(np.min(axis)) <= int(np.max(axis)) < size:
                    raise ModelError(
                        f"layer {name}: a piece {what} elements beyond a tensor of shape {sizes}"
                    )


OPERATORS = (Operator(Assemble, schedule_assemble),)
