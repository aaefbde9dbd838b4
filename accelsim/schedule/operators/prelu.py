"""Leaky rectifiers: positive and negative part by two clamps, then one sum with two scales."""

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
    third, most = builder.outputs.size // 3, builder.params.size // PAR_ROWS
    blocks_tile = min(target.blocks, third, most, MAX_COUNT)
    if blocks_tile < 1:
        raise ModelError(
            f"layer {layer.name}: not even one pixel of one channel block fits into the buffers of "
            f"configuration {builder.config.name}; enlarge act_bank_rows or par_rows"
        )
    rows = _rows(prelu, target, lanes, layer.name)
    pixels = target.shape[2]
    pixels_tile = min(pixels, third // blocks_tile, MAX_COUNT)
    boxes = [
        Box(0, (0, 1), c, b)
        for b in spans(target.blocks, blocks_tile)
        for c in spans(pixels, pixels_tile)
    ]
    for tile, box in enumerate(boxes):
        first, last = (block * PAR_ROWS for block in box.blocks)
        chunk = rows[first:last].tobytes()
        _tile(builder, index, tile, prelu, (source, target), box, chunk)
    return {
        "tiles": len(boxes),
        "row_splits": -(-pixels // pixels_tile),
        "out_channel_splits": -(-target.blocks // blocks_tile),
    }


def _rows(prelu: PRelu, target: View, lanes: int, name: str) -> np.ndarray:
    """(blocks·3, lanes) float32: both scales and the inverse of the result's."""
    rows = np.ones((PAR_ROWS, target.blocks * lanes), "<f4")
    rows[0] = prelu.positive_scale
    rows[1, : target.channels] = prelu.negative_scale
    rows[2] = prelu.inverse_output_scale
    check_multipliers(name, rows)
    return rows.reshape(PAR_ROWS, target.blocks, lanes).transpose(1, 0, 2).reshape(-1, lanes)


def _tile(
    builder: Builder,
    index: int,
    tile: int,
    prelu: PRelu,
    views: tuple[View, View],
    box: Box,
    chunk: bytes,
) -> None:
    config, third, zero = builder.config, builder.outputs.size // 3, prelu.input_zero_point
    source, target = views
    unit = Unit(index)
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(config, source, box, base, index, tile))
    par_base = builder.load_params((index, box.blocks), chunk, unit, tile)
    dst_base, _ = builder.outputs.take(None)
    above, below = dst_base + third, dst_base + 2 * third
    lanes = tail(target.channels, box.blocks, config.lanes)
    place = Place(box.shape, lanes, index, tile)
    values = {
        "a_base": above,
        **dense("a", box.shape),
        "b_base": below,
        **dense("b", box.shape),
        "out_h": box.shape[0],
        "out_w": box.shape[1],
        "blocks": box.shape[2],
        "tail": lanes,
        "a_zero_point": zero,
        "b_zero_point": zero,
        "dst_base": dst_base,
        **dense("dst", box.shape),
        "mode": ADD_MODES.index("fp32"),
        "par_base": par_base,
        "par_stride": PAR_ROWS if box.shape[2] > 1 else 0,
        "zero_point": prelu.zero_point,
        "clamp_min": prelu.clamp_min,
        "clamp_max": prelu.clamp_max,
    }
    unit.compute += [
        clamped(builder, place, base, above, zero, 127),
        clamped(builder, place, base, below, -128, zero),
        make_step(config, "add", values, index, tile),
        store_box(config, target, box, dst_base, index, tile),
    ]
    builder.units.append(unit)


OPERATORS = (Operator(PRelu, schedule_prelu),)
