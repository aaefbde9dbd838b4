"""Products in the matrix engine: tiles of output pixels as units of loads, conv, drain and store.

What comes in: a `MatrixJob`, which is a convolution between views with weights from anywhere. What
goes out: units appended to the builder. It must not know which operator wants the products.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

from accelsim.artifacts import I32, Requantize, Step
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.conv_tiling import ConvShape, Tiling
from accelsim.schedule.limits import step
from accelsim.schedule.parameters import end_values, parameter_rows, row_count, shared_rows
from accelsim.schedule.step import make_step
from accelsim.schedule.view import Box, Span, View, dense, load_box, spans, store_box, tail


@dataclass(frozen=True, slots=True)
class Pass:
    """One accumulation pass: a piece of the kernel and of the input blocks.

    `summand` says with which of several weights, whose products are summed.
    """

    kernel_rows: Span
    kernel_cols: Span
    in_blocks: Span
    summand: int = 0


class Weights(Protocol):
    """Where weight tiles come from."""

    def load(self, job: MatrixJob, unit: Unit, tile: int, p: Pass, out: Box) -> dict[str, int]:
        """Add the loads that a pass needs to the unit; fields of its instruction."""


@dataclass(slots=True)
class MatrixJob:
    """One convolution: what is read, what is written, and how it ends."""

    builder: Builder
    index: int
    name: str
    source: View
    target: View
    shape: ConvShape
    tiling: Tiling
    weights: Weights
    bias: I32 | None  # (output channels,); None if all blocks share rows without a bias
    requantize: Requantize
    input_zero_point: int
    weight_zero_point: int = 0
    part: Hashable = 0  # tells jobs of one layer apart that have other weights
    summands: int = 1  # weights whose products are summed, a pass each


def emit(job: MatrixJob, tile: int = 0) -> int:
    """Append the units of all tiles, numbered from `tile`; the number after the last."""
    for box, group in _order(job):
        _tile(job, tile, box, group)
        tile += 1
    return tile


def facts(job: MatrixJob) -> dict[str, int]:
    """What the tiling splits."""
    shape, tiling = job.shape, job.tiling
    passes = _passes(job, (0, shape.in_blocks))
    return {
        "row_splits": -(-shape.rows.out // tiling.rows),
        "col_splits": -(-shape.cols.out // tiling.cols),
        "out_channel_splits": -(-shape.out_blocks // tiling.out_blocks),
        "in_channel_splits": len({p.in_blocks for p in passes}),
        "kernel_splits": len({(p.kernel_rows, p.kernel_cols) for p in passes}),
    }


def _order(job: MatrixJob) -> Iterator[tuple[Box, Span]]:
    """Output tiles in the order of the tiling: boxes without blocks, and output block groups."""
    shape, tiling = job.shape, job.tiling
    boxes = [
        Box(image, rows, cols, (0, 1))
        for image in range(shape.images)
        for rows in spans(shape.rows.out, tiling.rows)
        for cols in spans(shape.cols.out, tiling.cols)
    ]
    groups = spans(shape.out_blocks, tiling.out_blocks)
    if tiling.blocks_outer:
        yield from ((box, group) for group in groups for box in boxes)
    else:
        yield from ((box, group) for box in boxes for group in groups)


def _passes(job: MatrixJob, group: Span) -> list[Pass]:
    kernel_h, kernel_w = job.tiling.kernel
    blocks = [group] if job.shape.depthwise else spans(job.shape.in_blocks, job.tiling.in_blocks)
    return [
        Pass(rows, cols, b, summand)
        for rows in spans(job.shape.kernel[0], kernel_h)
        for cols in spans(job.shape.kernel[1], kernel_w)
        for b in blocks
        for summand in range(job.summands)
    ]


def _tile(job: MatrixJob, tile: int, box: Box, group: Span) -> None:
    """Units of one output tile: a unit a pass; the last one drains and stores."""
    builder = job.builder
    out = Box(box.image, box.rows, box.cols, group)
    bank, _ = builder.acc.take(None)
    passes = _passes(job, group)
    for number, p in enumerate(passes):
        unit = Unit(job.index)
        source_box, block0, base = _input(job, unit, tile, box, p)
        values = {"acc_bank": bank, "accumulate": int(number > 0)}
        values |= job.weights.load(job, unit, tile, p, out)
        unit.compute.append(matrix_step(job, tile, out, p, (source_box, block0, base), values))
        if number == len(passes) - 1:
            unit.compute += _drain_and_store(job, unit, tile, out, bank)
        builder.units.append(unit)


def _input(job: MatrixJob, unit: Unit, tile: int, box: Box, p: Pass) -> tuple[Box, int, int]:
    """The input piece on chip for a pass: its box, the first block used in it, and its base."""
    shape = job.shape
    whole = job.tiling.whole_input and not shape.depthwise
    blocks = (0, shape.in_blocks) if whole else p.in_blocks
    piece = Box(
        box.image,
        shape.rows.needs(box.rows, p.kernel_rows),
        shape.cols.needs(box.cols, p.kernel_cols),
        blocks,
    )
    base, missing = job.builder.inputs.take((job.index, job.source, piece))
    if missing:
        config = job.builder.config
        unit.inputs.append(load_box(config, job.source, piece, base, job.index, tile))
    return piece, p.in_blocks[0] - blocks[0], base


def matrix_step(
    job: MatrixJob,
    tile: int,
    out: Box,
    p: Pass,
    source: tuple[Box, int, int],
    values: dict[str, int],
) -> Step:
    """`conv` or `dwconv` of one pass; `values` say where weights and accumulators lie."""
    shape, lanes = job.shape, job.builder.config.lanes
    piece, block0, base = source
    height, width, blocks = out.shape
    values |= {
        "in_base": base + block0,
        "in_h": piece.shape[0],
        "in_w": piece.shape[1],
        **dense("in", piece.shape),
        "origin_h": shape.rows.origin(out.rows, p.kernel_rows, piece.rows[0]),
        "origin_w": shape.cols.origin(out.cols, p.kernel_cols, piece.cols[0]),
        "stride_h": step(shape.rows.stride),
        "stride_w": step(shape.cols.stride),
        "dilation_h": step(shape.rows.dilation),
        "dilation_w": step(shape.cols.dilation),
        "kernel_h": p.kernel_rows[1] - p.kernel_rows[0],
        "out_h": height,
        "out_w": width,
        "input_zero_point": job.input_zero_point,
        "weight_zero_point": job.weight_zero_point,
    }
    out_tail = tail(job.target.channels, out.blocks, lanes)
    if shape.depthwise:
        values |= {"blocks": blocks, "tail": out_tail}
    else:
        values |= {
            "kernel_w": p.kernel_cols[1] - p.kernel_cols[0],
            "in_blocks": p.in_blocks[1] - p.in_blocks[0],
            "out_blocks": blocks,
            "in_tail": tail(job.source.channels, p.in_blocks, lanes),
            "out_tail": out_tail,
        }
    name = "dwconv" if shape.depthwise else "conv"
    return make_step(job.builder.config, name, values, job.index, tile)


def _drain_and_store(job: MatrixJob, unit: Unit, tile: int, out: Box, bank: int) -> list[Step]:
    builder = job.builder
    par_base = load_ends(job, unit, tile, out.blocks)
    dst_base, _ = builder.outputs.take(None)
    drain = drain_step(job, tile, (out, out), {"acc_bank": bank, "par_base": par_base}, dst_base)
    return [drain, store_box(builder.config, job.target, out, dst_base, job.index, tile)]


def load_ends(job: MatrixJob, unit: Unit, tile: int, blocks: Span) -> int:
    """Parameter row of the first of some channel blocks; loads the rows of all if need be."""
    requantize, lanes = job.requantize, job.builder.config.lanes
    if job.bias is None:
        chunk = shared_rows(requantize, lanes, job.name)
    else:
        chunk = parameter_rows(job.bias, requantize, blocks, lanes, job.name)
    return job.builder.load_params((job.index, chunk), chunk, unit, tile)


def drain_step(
    job: MatrixJob, tile: int, boxes: tuple[Box, Box], values: dict[str, int], dst_base: int
) -> Step:
    """`drain` of a box into the buffer at `dst_base` of a box around it that has the same pixels.

    `values` say where accumulators and parameters lie.
    """
    out, around = boxes
    height, width, blocks = out.shape
    values |= {
        "out_h": height,
        "out_w": width,
        "blocks": blocks,
        "tail": tail(job.target.channels, out.blocks, job.builder.config.lanes),
        "dst_base": dst_base + out.blocks[0] - around.blocks[0],
        **dense("dst", around.shape),
        "par_stride": row_count(job.requantize) if job.bias is not None and blocks > 1 else 0,
        **end_values(job.requantize),
    }
    return make_step(job.builder.config, "drain", values, job.index, tile)
