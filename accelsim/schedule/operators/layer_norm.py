"""Normalization over the channels of each pixel, with gain and offset a channel."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Layer, LayerNorm, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Builder, Unit
from accelsim.schedule.operators import Operator
from accelsim.schedule.pointwise import check_row, schedule_rows
from accelsim.schedule.view import Box, tensor_view

PAR_ROWS = 2  # gain and offset


def schedule_layer_norm(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one normalization; gain and offset are loaded once."""
    norm = layer.compute
    assert isinstance(norm, LayerNorm)
    lanes = builder.config.lanes
    source = tensor_view(tensors[layer.inputs[0]], lanes)
    target = tensor_view(tensors[layer.output], lanes)
    check_row(builder, layer.name, target.channels, target.blocks)
    most = builder.config.par_rows // PAR_ROWS
    if target.blocks > most:
        raise ModelError(
            f"layer {layer.name}: gain and offset of {target.channels} channels exceed the "
            f"parameter memory of configuration {builder.config.name}, which holds "
            f"{most * lanes}; enlarge par_rows"
        )
    chunk = _rows(norm, target.blocks, lanes)
    values = {
        "par_stride": PAR_ROWS if target.blocks > 1 else 0,
        "gain_bits": norm.gain_bits,
        "epsilon": norm.epsilon,
        "epsilon_shift": norm.epsilon_shift,
        "zero_point": norm.zero_point,
        "clamp_min": norm.clamp_min,
        "clamp_max": norm.clamp_max,
    }

    def parameters(unit: Unit, tile: int, _: Box) -> dict[str, int]:
        return {"par_base": builder.load_params((index,), chunk, unit, tile), **values}

    return schedule_rows(builder, index, "layernorm", (source, target), parameters, target.blocks)


def _rows(norm: LayerNorm, blocks: int, lanes: int) -> bytes:
    """Rows of gain and offset, block by block; pad lanes are 0."""
    rows = np.zeros((PAR_ROWS, blocks * lanes), "<i4")
    rows[0, : norm.gain.size] = norm.gain
    rows[1, : norm.offset.size] = norm.offset
    return rows.reshape(PAR_ROWS, blocks, lanes).transpose(1, 0, 2).tobytes()


OPERATORS = (Operator(LayerNorm, schedule_layer_norm),)
