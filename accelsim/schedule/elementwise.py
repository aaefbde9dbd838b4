"""Residual addition of one layer: chunks of pixels and blocks of two tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelsim.artifacts import Access, Add, Layer, Step, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Box, Builder, Unit, load_box, spans, store_box, tail
from accelsim.schedule.limits import MAX_COUNT, check_multipliers
from accelsim.spec.arithmetic import ADD_MODES
from accelsim.spec.config import PAR_BEATS

PAR_ROWS = 3  # scales of both operands and of the result


def schedule_add(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one addition; both operands share an input slot."""
    add = layer.compute
    assert isinstance(add, Add)
    lanes = builder.config.lanes
    a, b = (_flat(tensors[name]) for name in layer.inputs)
    target = _flat(tensors[layer.output])
    if a.shape != target.shape or b.shape != target.shape:
        raise ModelError(
            f"layer {layer.name}: operands of shape {a.shape} and {b.shape} cannot be added to "
            f"{target.shape}; broadcasting is not supported"
        )
    pixels, blocks = target.shape[2], target.blocks(lanes)
    half = builder.inputs.size // 2
    if half < 1 or builder.params.size < PAR_ROWS:
        raise ModelError(
            f"layer {layer.name}: not even one pixel of one channel block fits into the buffers of "
            f"configuration {builder.config.name}; enlarge act_bank_rows or par_rows"
        )
    blocks_tile = min(blocks, half, MAX_COUNT)
    pixels_tile = min(pixels, half // blocks_tile, MAX_COUNT)
    tile = -1
    for tile, (cols, group) in enumerate(
        (c, g) for c in spans(pixels, pixels_tile) for g in spans(blocks, blocks_tile)
    ):
        _tile(
            builder, index, tile, add, layer.name, (a, b, target), Box(0, (0, 1), cols, group), half
        )
    return {"tiles": tile + 1, "row_splits": -(-pixels // pixels_tile)}


def _flat(tensor: TensorExtent) -> TensorExtent:
    n, h, w, c = tensor.shape
    return replace(tensor, shape=(1, 1, n * h * w, c))


def _parameter_rows(add: Add, lanes: int, name: str) -> bytes:
    """Three rows that all blocks share: scales (float32), or multipliers and shift (int32)."""
    if add.fixed:
        words = (add.fixed.a_multiplier, add.fixed.b_multiplier, add.fixed.shift)
        return np.repeat(np.array(words, "<i4"), lanes).tobytes()
    scales = np.array([add.a_scale, add.b_scale, add.inverse_output_scale], "<f4")
    check_multipliers(name, scales)
    return np.repeat(scales, lanes).tobytes()


def _tile(
    builder: Builder,
    index: int,
    tile: int,
    add: Add,
    name: str,
    tensors: tuple[TensorExtent, TensorExtent, TensorExtent],
    box: Box,
    half: int,
) -> None:
    a, b, target = tensors
    lanes = builder.config.lanes
    unit = Unit(index)
    a_base, _ = builder.inputs.take(None)
    b_base = a_base + half
    unit.inputs.append(load_box(builder, a, box, a_base, index, tile))
    unit.inputs.append(load_box(builder, b, box, b_base, index, tile))
    par_base = builder.load_params((index,), _parameter_rows(add, lanes, name), unit, tile)
    dst_base, _ = builder.outputs.take(None)
    _, width, blocks = box.shape
    strides = {
        f"{p}_{s}": v
        for p in ("a", "b", "dst")
        for s, v in (("col_stride", blocks), ("block_stride", 1))
    }
    values = {
        "a_base": a_base,
        "b_base": b_base,
        "dst_base": dst_base,
        **strides,
        "out_h": 1,
        "out_w": width,
        "blocks": blocks,
        "tail": tail(target.shape[3], box.blocks, lanes),
        "a_zero_point": add.a_zero_point,
        "b_zero_point": add.b_zero_point,
        "mode": ADD_MODES.index("fixed" if add.fixed else "fp32"),
        "par_base": par_base,
        "zero_point": add.zero_point,
        "clamp_min": add.clamp_min,
        "clamp_max": add.clamp_max,
    }
    accesses = (
        *builder.act(a_base, box.size, False),
        *builder.act(b_base, box.size, False),
        Access("par", par_base * PAR_BEATS, (par_base + PAR_ROWS) * PAR_BEATS, False),
        *builder.act(dst_base, box.size, True),
    )
    unit.compute.append(Step("add", values, index, tile, accesses))
    unit.compute.append(store_box(builder, target, box, dst_base, index, tile))
    builder.units.append(unit)
