"""Elementwise instructions of two operands: chunks of rows, pixels and blocks, with broadcasting.

What comes in: two operands, a target, and the instruction with its parameter rows. What goes out:
units appended to the builder. It must not know which operator wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from accelsim.artifacts import I8, Layer, Requantize, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.limits import MAX_COUNT
from accelsim.schedule.parameters import row_count, shared_rows
from accelsim.schedule.pointwise import Place, requantized
from accelsim.schedule.step import make_step
from accelsim.schedule.tiles import boxes
from accelsim.schedule.view import (
    Box,
    Span,
    View,
    dense,
    load_box,
    merged,
    store_box,
    tail,
    tensor_view,
)
from accelsim.spec.config import PAR_BEATS


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor over the target's pixels: strides 0 repeat it; `scalar` repeats its one channel."""

    view: View
    scalar: bool
    requantize: Requantize | None = None  # the operand is this of x - zero_point, as int8
    zero_point: int = 0

    def box(self, box: Box) -> Box:
        """What a box of the target needs of it."""
        rows, cols = (
            (0, 1) if stride == 0 else span
            for stride, span in zip(self.view.strides[1:], (box.rows, box.cols), strict=True)
        )
        return Box(box.image, rows, cols, (0, 1) if self.scalar else box.blocks)

    def fields(self, name: str, base: int, box: Box) -> dict[str, int]:
        """Where the operand lies on chip; a stride is 0 where it is repeated."""
        own = self.box(box)
        values = dense(name, own.shape)
        if self.view.strides[1] == 0:
            values[f"{name}_row_stride"] = 0
        if self.view.strides[2] == 0:
            values[f"{name}_col_stride"] = 0
        if self.scalar:
            values[f"{name}_block_stride"] = 0
        return {f"{name}_base": base, **values, f"{name}_scalar": int(self.scalar)}


@dataclass(frozen=True, slots=True)
class Pairing:
    """An instruction of two operands and its parameter rows."""

    instruction: str
    values: Mapping[str, int]
    rows: Callable[[Span], bytes]  # parameter rows of a span of blocks, or those of all
    par_rows: int  # a block
    shared: bool  # all blocks share the rows


def operands(
    builder: Builder, layer: Layer, tensors: dict[str, TensorExtent], constant: I8 | None
) -> tuple[Operand, Operand, View]:
    """Both operands and the target of a layer, the second one from the constants if there is one.

    Raises ModelError where an axis is neither that of the target nor 1.
    """
    lanes = builder.config.lanes
    target = tensor_view(tensors[layer.output], lanes)
    views = [tensor_view(tensors[name], lanes) for name in layer.inputs[:2]]
    if constant is not None:
        views = [views[0], builder.constant_view(constant)]
    spread = [_spread(view, target, layer.name) for view in views]
    scalar = [view.channels < target.channels for view in views]
    a, b, flat = merged(*spread, target)
    return Operand(a, scalar[0]), Operand(b, scalar[1]), flat


def _spread(view: View, target: View, name: str) -> View:
    """The view over the target's pixels, with stride 0 along an axis of 1."""
    own, wanted = (*view.shape, view.channels), (*target.shape, target.channels)
    if any(size not in (1, full) for size, full in zip(own, wanted, strict=True)):
        raise ModelError(
            f"layer {name}: an operand of shape {own} cannot be broadcast to {wanted}; use axes of "
            "1 or of the output's size"
        )
    strides = tuple(
        stride if size == full else 0
        for stride, size, full in zip(view.strides, view.shape, target.shape, strict=True)
    )
    return replace(view, shape=target.shape, strides=strides)  # type: ignore[arg-type]


def schedule_pairs(
    builder: Builder,
    index: int,
    name: str,
    parts: tuple[Operand, Operand, View],
    pairing: Pairing,
) -> dict[str, int]:
    """Append the units; both operands share an input slot. Returns facts of the tiling.

    Operands that are requantized first share an output slot with the result.
    """
    target = parts[2]
    extra = [p.requantize for p in parts[:2] if p.requantize is not None]
    room = min(builder.inputs.size // 2, builder.outputs.size // (1 + len(extra)))
    most = _blocks_of_parameters(builder, pairing, sum(row_count(r) for r in extra))
    blocks_tile = min(target.blocks, room, most, MAX_COUNT)
    if blocks_tile < 1:
        raise ModelError(
            f"layer {name}: not even one pixel of one channel block fits into the buffers of "
            f"configuration {builder.config.name}; enlarge act_bank_rows or par_rows"
        )
    _, height, width = target.shape
    cols_tile = min(width, room // blocks_tile, MAX_COUNT)
    rows_tile = min(height, room // (blocks_tile * cols_tile), MAX_COUNT)
    tiles = list(boxes(target, (rows_tile, cols_tile, blocks_tile)))
    for tile, box in enumerate(tiles):
        _tile(builder, index, tile, name, parts, pairing, box)
    return {
        "tiles": len(tiles),
        "row_splits": -(-height // rows_tile) * -(-width // cols_tile),
        "out_channel_splits": -(-target.blocks // blocks_tile),
    }


def _blocks_of_parameters(builder: Builder, pairing: Pairing, extra_rows: int) -> int:
    """Blocks whose parameter rows fit into a slot, or one that needs more than a slot."""
    rows = builder.params.size - extra_rows
    if pairing.shared and rows >= pairing.par_rows:
        return MAX_COUNT
    if rows >= pairing.par_rows:
        return rows // pairing.par_rows
    return int(pairing.par_rows + extra_rows <= builder.config.par_rows)


def _tile(
    builder: Builder,
    index: int,
    tile: int,
    name: str,
    parts: tuple[Operand, Operand, View],
    pairing: Pairing,
    box: Box,
) -> None:
    target, config = parts[2], builder.config
    unit = Unit(index)
    chunk = pairing.rows(box.blocks)
    own_rows = len(chunk) // (PAR_BEATS * config.lanes)
    for operand in parts[:2]:
        if operand.requantize is not None:
            chunk += shared_rows(operand.requantize, config.lanes, name)
    key = (index,) if pairing.shared else (index, box.blocks)
    par_base = builder.load_params(key, chunk, unit, tile)
    in_base, _ = builder.inputs.take(None)
    dst_base, _ = builder.outputs.take(None)
    height, width, blocks = box.shape
    values: dict[str, int] = {}
    free, row = dst_base + box.size, par_base + own_rows
    for letter, operand in zip("ab", parts[:2], strict=True):
        base = in_base if letter == "a" else in_base + builder.inputs.size // 2
        own = operand.box(box)
        unit.inputs.append(load_box(config, operand.view, own, base, index, tile))
        if operand.requantize is not None:
            lanes = tail(operand.view.channels, own.blocks, config.lanes)
            place = Place(own.shape, lanes, index, tile)
            bases = (base, free, row)
            unit.compute.append(
                requantized(builder, place, bases, operand.zero_point, operand.requantize)
            )
            base, free, row = free, free + own.size, row + row_count(operand.requantize)
        values |= operand.fields(letter, base, box)
    values |= {
        "dst_base": dst_base,
        **dense("dst", box.shape),
        "out_h": height,
        "out_w": width,
        "blocks": blocks,
        "tail": tail(target.channels, box.blocks, config.lanes),
        "par_base": par_base,
        "par_stride": 0 if pairing.shared or blocks == 1 else pairing.par_rows,
        **pairing.values,
    }
    unit.compute.append(make_step(config, pairing.instruction, values, index, tile))
    unit.compute.append(store_box(config, target, box, dst_base, index, tile))
    builder.units.append(unit)
