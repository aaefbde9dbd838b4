"""Depthwise convolutions: pieces of a plan as units of loads, products, drains and one store.

What comes in: a `MatrixJob` and its `Plan`. What goes out: units appended to the builder. It must
not know how a plan is chosen.
"""

from __future__ import annotations

from dataclasses import replace

from accelsim.schedule.build import Unit
from accelsim.schedule.depthwise_pieces import Piece, input_box
from accelsim.schedule.depthwise_plan import Plan
from accelsim.schedule.depthwise_work import stores_rows
from accelsim.schedule.matrix import MatrixJob, Pass, drain_step, load_ends, matrix_step
from accelsim.schedule.parameters import row_count
from accelsim.schedule.view import load_box, store_box
from accelsim.spec.config import DEPTHWISE_TAPS


def emit_plan(job: MatrixJob, plan: Plan) -> dict[str, int]:
    """Append the units of all pieces; what the plan splits, and the number of pieces."""
    builder = job.builder
    builder.arrange(plan.sizes.banks, plan.sizes.slots)
    for tile, piece in enumerate(plan.pieces):
        builder.units.append(_unit(job, tile, piece))
    builder.arrange(builder.config.act_banks // 2)
    outs = [piece.out for piece in plan.pieces]
    return {
        "tiles": len(outs),
        "row_splits": len({out.rows for out in outs}),
        "col_splits": len({out.cols for out in outs}),
        "out_channel_splits": len({part.blocks for piece in plan.pieces for part in piece.parts}),
        "in_channel_splits": len({out.blocks for out in outs}),
        "kernel_splits": 1,
    }


def _unit(job: MatrixJob, tile: int, piece: Piece) -> Unit:
    builder, out, unit = job.builder, piece.out, Unit(job.index)
    at_start = not builder.units
    base = _load(job, unit, tile, piece)
    kernel_h, kernel_w = job.shape.kernel
    whole = Pass((0, kernel_h), (0, kernel_w), piece.constants)
    weights = job.weights.load(job, unit, tile, whole, replace(out, blocks=piece.constants))
    block_rows = kernel_h * weights["groups_w"] * DEPTHWISE_TAPS
    loads = len(unit.weights)
    par_base = load_ends(job, unit, tile, piece.constants)
    if at_start:
        # Products do not wait for parameters, so the next unit's loads come first.
        unit.compute += unit.weights[loads:]
        del unit.weights[loads:]
    dst_base, _ = builder.outputs.take(None)
    par_rows = row_count(job.requantize) if job.bias is not None else 0
    source = input_box(job.shape, out)
    for part in piece.parts:
        bank, _ = builder.acc.take(None)
        skipped = part.blocks[0] - piece.constants[0]
        values = {**weights, "acc_bank": bank, "accumulate": 0}
        values["wgt_base"] += skipped * block_rows
        at = (source, part.blocks[0] - out.blocks[0], base)
        unit.compute.append(matrix_step(job, tile, part, whole, at, values))
        ends = {"acc_bank": bank, "par_base": par_base + skipped * par_rows}
        unit.compute.append(drain_step(job, tile, (part, out), ends, dst_base))
    apart = stores_rows(job.target, out, builder.config)
    unit.compute.append(
        store_box(builder.config, job.target, out, dst_base, job.index, tile, apart)
    )
    return unit


def _load(job: MatrixJob, unit: Unit, tile: int, piece: Piece) -> int:
    """Load the rows that a piece adds to its buffer; activation row of the first that it needs."""
    builder, buffer = job.builder, piece.buffer
    base, _ = builder.inputs.take((job.index, job.part, buffer))
    _, width, blocks = buffer.shape
    row_rows, (first, last) = width * blocks, piece.added
    if first < last:
        box, at = replace(buffer, rows=piece.added), base + (first - buffer.rows[0]) * row_rows
        unit.inputs.append(load_box(builder.config, job.source, box, at, job.index, tile))
    needed = input_box(job.shape, piece.out).rows[0]
    return base + (needed - buffer.rows[0]) * row_rows
