"""Leaky rectifiers: positive and negative part by two clamps, then one sum with two scales.

Scales of an instruction are positive. A channel whose slope is 0 or below has a negligible one in
the sum, which rounds to nothing. Where slopes are below 0, a second instruction subtracts from that
result, which is in the output's steps, the negative part by their sizes; the others' are negligible
there.
"""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Layer, PRelu, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.limits import MAX_COUNT, check_multipliers
from accelsim.schedule.operators import Operator
from accelsim.schedule.pointwise import Place, clamped
from accelsim.schedule.step import make_step
from accelsim.schedule.view import (
    Box,
    View,
    dense,
    load_box,
    merged,
    spans,
    store_box,
    tail,
    tensor_view,
)
from accelsim.spec.arithmetic import ADD_MODES

PAR_ROWS = 3  # scales of both parts and of the result
NEGLIGIBLE = np.float32(2.0**-100)


def schedule_prelu(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one rectifier; parts and result share an output slot."""
    prelu = layer.compute
    assert isinstance(prelu, PRelu)
    lanes = builder.config.lanes
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    source, target = merged(source, target)
    passes = 1 if np.all(prelu.negative_scale >= 0) else 2
    place = builder.outputs.size // (2 + passes)
    most = builder.params.size // (passes * PAR_ROWS)
    blocks_tile = min(target.blocks, place, most, MAX_COUNT)
    if blocks_tile < 1:
        raise ModelError(
            f"layer {layer.name}: not even one pixel of one channel block fits into the buffers of "
            f"configuration {builder.config.name}; enlarge act_bank_rows or par_rows"
        )
    rows = _rows(prelu, target, lanes, layer.name, passes)
    pixels = target.shape[2]
    pixels_tile = min(pixels, place // blocks_tile, MAX_COUNT)
    boxes = [
        Box(0, (0, 1), c, b)
        for b in spans(target.blocks, blocks_tile)
        for c in spans(pixels, pixels_tile)
    ]
    for tile, box in enumerate(boxes):
        first, last = (block * passes * PAR_ROWS for block in box.blocks)
        chunk = rows[first:last].tobytes()
        _tile(builder, index, tile, prelu, (source, target), box, (passes, chunk))
    return {
        "tiles": len(boxes),
        "row_splits": -(-pixels // pixels_tile),
        "out_channel_splits": -(-target.blocks // blocks_tile),
    }


def _rows(prelu: PRelu, target: View, lanes: int, name: str, passes: int) -> np.ndarray:
    """(blocks·passes·3, lanes) float32: both scales and the inverse of the result's, each pass."""
    rows = np.ones((passes, PAR_ROWS, target.blocks * lanes), "<f4")
    slopes = prelu.negative_scale
    scales = (prelu.positive_scale, np.float32(1) / prelu.inverse_output_scale)
    parts = (slopes, -slopes)
    for row, scale, part in zip(rows, scales, parts, strict=False):
        row[0] = scale
        row[1, : target.channels] = np.where(part > 0, part, NEGLIGIBLE)
        row[2] = prelu.inverse_output_scale
    check_multipliers(name, rows)
    shape = (passes * PAR_ROWS, target.blocks, lanes)
    return rows.reshape(shape).transpose(1, 0, 2).reshape(-1, lanes)


def _tile(
    builder: Builder,
    index: int,
    tile: int,
    prelu: PRelu,
    views: tuple[View, View],
    box: Box,
    parameters: tuple[int, bytes],
) -> None:
    config, zero = builder.config, prelu.input_zero_point
    source, target = views
    passes, chunk = parameters
    unit = Unit(index)
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(config, source, box, base, index, tile))
    par_base = builder.load_params((index, box.blocks), chunk, unit, tile)
    first, _ = builder.outputs.take(None)
    part = builder.outputs.size // (2 + passes)
    above, below = first + passes * part, first + (passes + 1) * part
    lanes = tail(target.channels, box.blocks, config.lanes)
    place = Place(box.shape, lanes, index, tile)
    unit.compute += [
        clamped(builder, place, base, above, zero, 127),
        clamped(builder, place, base, below, -128, zero),
    ]
    operand, operand_zero = above, zero
    for number in range(passes):
        last = number == passes - 1
        values = {
            "a_base": operand,
            **dense("a", box.shape),
            "b_base": below,
            **dense("b", box.shape),
            "out_h": box.shape[0],
            "out_w": box.shape[1],
            "blocks": box.shape[2],
            "tail": lanes,
            "a_zero_point": operand_zero,
            "b_zero_point": zero,
            "dst_base": first + number * part,
            **dense("dst", box.shape),
            "mode": ADD_MODES.index("fp32"),
            "subtract": number,
            "par_base": par_base + number * PAR_ROWS,
            "par_stride": passes * PAR_ROWS if box.shape[2] > 1 else 0,
            "zero_point": prelu.zero_point,
            "clamp_min": prelu.clamp_min if last else -128,
            "clamp_max": prelu.clamp_max if last else 127,
        }
        unit.compute.append(make_step(config, "add", values, index, tile))
        operand, operand_zero = first + number * part, prelu.zero_point
    unit.compute.append(store_box(config, target, box, operand, index, tile))
    builder.units.append(unit)


OPERATORS = (Operator(PRelu, schedule_prelu),)
