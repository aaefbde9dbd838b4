"""Depthwise convolutions: pieces of a plan as units of loads, products, drains and one store.

What comes in: a `MatrixJob` and its `Plan`. What goes out: units appended to the builder. It must
not know how a plan is chosen.
"""

from __future__ import annotations

from dataclasses import replace

from accelsim.schedule.build import Unit
from accelsim.schedule.depthwise_plan import Piece, Plan, input_box, stores_rows
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
    first_of_all = not builder.units
    source = input_box(job.shape, out)
    base, _ = builder.inputs.take(None)
    load = load_box(builder.config, job.source, source, base, job.index, tile)
    unit.inputs.append(load)
    kernel_h, kernel_w = job.shape.kernel
    whole = Pass((0, kernel_h), (0, kernel_w), piece.constants)
    weights = job.weights.load(job, unit, tile, whole, replace(out, blocks=piece.constants))
    block_rows = kernel_h * weights["groups_w"] * DEPTHWISE_TAPS
    weights_loaded = len(unit.weights)
    par_base = load_ends(job, unit, tile, piece.constants)
    if first_of_all:
        # Nothing runs yet, and the products do not wait for parameters.
        unit.inputs += unit.weights[weights_loaded:]
        del unit.weights[weights_loaded:]
    dst_base, _ = builder.outputs.take(None)
    par_rows = row_count(job.requantize) if job.bias is not None else 0
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
