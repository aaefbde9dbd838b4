"""Pooling of one layer: windows in the vector engine, or long sums through the depthwise datapath.

A sum whose window exceeds the input buffer becomes a depthwise convolution with weights of 1, whose
passes accumulate; a maximum has no such way and is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelsim.artifacts import Access, Conv2d, Layer, Pool2d, Step, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Box, Builder, Unit, dense, load_box, spans, store_box, tail
from accelsim.schedule.conv import requantize_rows, schedule_conv
from accelsim.schedule.limits import (
    MAX_COUNT,
    MAX_KERNEL,
    check_padding,
    largest_tile,
    step,
)
from accelsim.schedule.window import Axis, tile_sizes
from accelsim.spec.config import PAR_BEATS


def schedule_pool(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one pooling layer; returns its facts."""
    pool = layer.compute
    assert isinstance(pool, Pool2d)
    source, target = tensors[layer.inputs[0]], tensors[layer.output]
    rows = Axis(source.shape[1], target.shape[1], pool.stride[0], 1, pool.padding[0])
    cols = Axis(source.shape[2], target.shape[2], pool.stride[1], 1, pool.padding[1])
    check_padding(layer.name, (rows, cols), pool.kernel)
    tiling = _choose(builder, pool, rows, cols, target)
    if tiling is None:
        if pool.kind != "sum":
            raise ModelError(
                f"layer {layer.name}: a pooling window of {pool.kernel[0]}×{pool.kernel[1]} "
                f"exceeds {_limit(builder, pool)}"
            )
        return schedule_conv(builder, index, _as_depthwise(layer, pool, target), tensors)
    tile_rows, tile_cols, tile_blocks = tiling
    boxes = [
        Box(n, r, c, b)
        for n in range(target.shape[0])
        for r in spans(rows.out, tile_rows)
        for c in spans(cols.out, tile_cols)
        for b in spans(target.blocks(builder.config.lanes), tile_blocks)
    ]
    for tile, box in enumerate(boxes):
        _tile(builder, index, tile, layer, pool, (source, target), (rows, cols), box)
    return {
        "tiles": len(boxes),
        "row_splits": -(-rows.out // tile_rows),
        "col_splits": -(-cols.out // tile_cols),
        "out_channel_splits": -(-target.blocks(builder.config.lanes) // tile_blocks),
        "padded": int(any(pool.padding)),
        "pad_zero_point": pool.input_zero_point,
    }


def _limit(builder: Builder, pool: Pool2d) -> str:
    if max(pool.kernel) > MAX_KERNEL:
        return f"{MAX_KERNEL}×{MAX_KERNEL}, the largest window of the NPU"
    return f"the input buffer of configuration {builder.config.name}; enlarge act_bank_rows"


def _choose(
    builder: Builder, pool: Pool2d, rows: Axis, cols: Axis, target: TensorExtent
) -> tuple[int, int, int] | None:
    """Rows, columns and blocks of a tile: as many blocks, then columns, then rows as fit."""
    if max(pool.kernel) > MAX_KERNEL:
        return None
    most = min(MAX_COUNT, builder.params.size // 2) if pool.kind == "sum" else MAX_COUNT
    for blocks in tile_sizes(target.blocks(builder.config.lanes)):
        if blocks > most:
            continue
        for w in tile_sizes(cols.out):
            in_w = cols.longest(w, pool.kernel[1])
            for h in tile_sizes(rows.out):
                in_h = rows.longest(h, pool.kernel[0])
                if (
                    in_h * in_w * blocks <= builder.inputs.size
                    and h * w * blocks <= builder.outputs.size
                    and max(in_h, in_w) <= MAX_COUNT
                    and h <= largest_tile(rows)
                    and w <= largest_tile(cols)
                ):
                    return h, w, blocks
    return None


def _as_depthwise(layer: Layer, pool: Pool2d, target: TensorExtent) -> Layer:
    assert pool.requantize is not None
    channels = target.shape[3]
    conv = Conv2d(
        weight=np.ones((channels, *pool.kernel, 1), np.int8),
        bias=np.zeros(channels, np.int32),
        input_zero_point=pool.input_zero_point,
        weight_zero_point=0,
        requantize=pool.requantize,
        stride=pool.stride,
        padding=pool.padding,
        depthwise=True,
    )
    return replace(layer, compute=conv)


def _tile(
    builder: Builder,
    index: int,
    tile: int,
    layer: Layer,
    pool: Pool2d,
    tensors: tuple[TensorExtent, TensorExtent],
    axes: tuple[Axis, Axis],
    box: Box,
) -> None:
    source, target = tensors
    rows, cols = axes
    lanes = builder.config.lanes
    unit = Unit(index)
    kernel = ((0, pool.kernel[0]), (0, pool.kernel[1]))
    piece = Box(
        box.image, rows.needs(box.rows, kernel[0]), cols.needs(box.cols, kernel[1]), box.blocks
    )
    base, _ = builder.inputs.take(None)
    unit.inputs.append(load_box(builder, source, piece, base, index, tile))
    dst_base, _ = builder.outputs.take(None)
    height, width, blocks = box.shape
    values = {
        "in_base": base,
        "in_h": piece.shape[0],
        "in_w": piece.shape[1],
        **dense("in", piece.shape),
        "origin_h": rows.origin(box.rows, kernel[0], piece.rows[0]),
        "origin_w": cols.origin(box.cols, kernel[1], piece.cols[0]),
        "stride_h": step(pool.stride[0]),
        "stride_w": step(pool.stride[1]),
        "kernel_h": pool.kernel[0],
        "kernel_w": pool.kernel[1],
        "out_h": height,
        "out_w": width,
        "blocks": blocks,
        "tail": tail(target.shape[3], box.blocks, lanes),
        "dst_base": dst_base,
        **dense("dst", box.shape),
    }
    accesses = [*builder.act(base, piece.size, False), *builder.act(dst_base, box.size, True)]
    if pool.requantize is None:
        values |= {"clamp_min": pool.clamp_min, "clamp_max": pool.clamp_max}
    else:
        zeros = np.zeros(target.shape[3], np.int32)
        chunk = requantize_rows(zeros, pool.requantize, box.blocks, lanes, layer.name)
        par_base = builder.load_params((index, box.blocks), chunk, unit, tile)
        accesses.append(
            Access("par", par_base * PAR_BEATS, (par_base + 2 * blocks) * PAR_BEATS, False)
        )
        values |= {
            "sum": 1,
            "input_zero_point": pool.input_zero_point,
            "par_base": par_base,
            "par_stride": 2 if blocks > 1 else 0,
            "zero_point": pool.requantize.zero_point,
            "clamp_min": pool.requantize.clamp_min,
            "clamp_max": pool.requantize.clamp_max,
        }
    unit.compute.append(Step("pool", values, index, tile, tuple(accesses)))
    unit.compute.append(store_box(builder, target, box, dst_base, index, tile))
    builder.units.append(unit)
