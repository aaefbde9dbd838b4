"""Convolution and depthwise convolution of one layer as units of loads, conv, drain and store.

What comes in: a layer, its tensors, the builder. What goes out: units appended to the builder, and
the facts of the tiling. Weights are laid out in the order in which their instruction reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from accelsim.artifacts import Access, Conv2d, Layer, Requantize, Step, TensorExtent
from accelsim.errors import ModelError
from accelsim.schedule.build import Box, Builder, Unit, dense, load_box, spans, store_box, tail
from accelsim.schedule.conv_tiling import ConvShape, Tiling, choose
from accelsim.schedule.limits import check_multipliers, check_padding, step
from accelsim.schedule.window import Axis
from accelsim.spec.config import DEPTHWISE_TAPS, PAR_BEATS

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pass:
    """One accumulation pass: a piece of the kernel and of the input blocks."""

    kernel_rows: Span
    kernel_cols: Span
    in_blocks: Span


@dataclass(slots=True)
class ConvJob:
    """What the emission of one layer needs to know."""

    builder: Builder
    index: int
    layer: Layer
    conv: Conv2d
    source: TensorExtent
    target: TensorExtent
    shape: ConvShape
    tiling: Tiling


def schedule_conv(
    builder: Builder, index: int, layer: Layer, tensors: dict[str, TensorExtent]
) -> dict[str, int]:
    """Append the units of one convolution; returns its facts."""
    conv = layer.compute
    assert isinstance(conv, Conv2d)
    source, target = tensors[layer.inputs[0]], tensors[layer.output]
    source, target = _flat_if_pointwise(conv, source, target)
    shape = _shape(conv, source, target, builder.config.lanes)
    check_padding(layer.name, (shape.rows, shape.cols), shape.kernel)
    tiling = choose(shape, builder.config, layer.name)
    job = ConvJob(builder, index, layer, conv, source, target, shape, tiling)
    tile = -1
    for tile, (box, group) in enumerate(_order(job)):
        _tile(job, tile, box, group)
    passes = _passes(job, (0, shape.in_blocks))
    return {
        "tiles": tile + 1,
        "row_splits": -(-shape.rows.out // tiling.rows),
        "col_splits": -(-shape.cols.out // tiling.cols),
        "out_channel_splits": -(-shape.out_blocks // tiling.out_blocks),
        "in_channel_splits": len({p.in_blocks for p in passes}),
        "kernel_splits": len({(p.kernel_rows, p.kernel_cols) for p in passes}),
        "padded": int(any(conv.padding)),
        "pad_zero_point": conv.input_zero_point,
    }


def _flat_if_pointwise(
    conv: Conv2d, source: TensorExtent, target: TensorExtent
) -> tuple[TensorExtent, TensorExtent]:
    """A 1×1 convolution at stride 1 sees all pixels of all images as one row."""
    n, h, w, c = source.shape
    pointwise = conv.weight.shape[1:3] == (1, 1) and conv.stride == (1, 1)
    if not pointwise or any(conv.padding) or conv.depthwise:
        return source, target
    pixels = n * h * w
    return (
        replace(source, shape=(1, 1, pixels, c)),
        replace(target, shape=(1, 1, pixels, target.shape[3])),
    )


def _shape(conv: Conv2d, source: TensorExtent, target: TensorExtent, lanes: int) -> ConvShape:
    n, h, w, _ = source.shape
    _, kernel_h, kernel_w, _ = conv.weight.shape
    return ConvShape(
        n,
        Axis(h, target.shape[1], conv.stride[0], conv.dilation[0], conv.padding[0]),
        Axis(w, target.shape[2], conv.stride[1], conv.dilation[1], conv.padding[1]),
        (kernel_h, kernel_w),
        source.blocks(lanes),
        target.blocks(lanes),
        conv.depthwise,
    )


def _order(job: ConvJob) -> Iterator[tuple[Box, Span]]:
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


def _passes(job: ConvJob, group: Span) -> list[Pass]:
    kernel_h, kernel_w = job.tiling.kernel
    blocks = [group] if job.shape.depthwise else spans(job.shape.in_blocks, job.tiling.in_blocks)
    return [
        Pass(rows, cols, b)
        for rows in spans(job.shape.kernel[0], kernel_h)
        for cols in spans(job.shape.kernel[1], kernel_w)
        for b in blocks
    ]


def _tile(job: ConvJob, tile: int, box: Box, group: Span) -> None:
    """Units of one output tile: a unit a pass; the last one drains and stores."""
    builder = job.builder
    out = Box(box.image, box.rows, box.cols, group)
    bank, _ = builder.acc.take(None)
    passes = _passes(job, group)
    for number, p in enumerate(passes):
        unit = Unit(job.index)
        source_box, block0, base = _input(job, unit, tile, box, p)
        unit.compute.append(
            _matrix_step(job, unit, tile, out, p, number > 0, (source_box, block0, base), bank)
        )
        if number == len(passes) - 1:
            unit.compute += _drain_and_store(job, unit, tile, out, bank)
        builder.units.append(unit)


def _input(job: ConvJob, unit: Unit, tile: int, box: Box, p: Pass) -> tuple[Box, int, int]:
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
    base, missing = job.builder.inputs.take((job.index, piece))
    if missing:
        unit.inputs.append(load_box(job.builder, job.source, piece, base, job.index, tile))
    return piece, p.in_blocks[0] - blocks[0], base


def _matrix_step(
    job: ConvJob,
    unit: Unit,
    tile: int,
    out: Box,
    p: Pass,
    accumulate: bool,
    source: tuple[Box, int, int],
    bank: int,
) -> Step:
    builder, shape, conv = job.builder, job.shape, job.conv
    lanes = builder.config.lanes
    piece, block0, base = source
    height, width, blocks = out.shape
    chunk, groups_w, wide = _weights(job, p, out)
    wgt_base, missing = builder.weights.take((job.index, p, out.blocks, wide))
    if missing:
        unit.weights.append(builder.load_constant(chunk, 1, wgt_base, job.index, tile))
    values = {
        "in_base": base + block0,
        "in_h": piece.shape[0],
        "in_w": piece.shape[1],
        **dense("in", piece.shape),
        "origin_h": shape.rows.origin(out.rows, p.kernel_rows, piece.rows[0]),
        "origin_w": shape.cols.origin(out.cols, p.kernel_cols, piece.cols[0]),
        "stride_h": step(conv.stride[0]),
        "stride_w": step(conv.stride[1]),
        "dilation_h": step(conv.dilation[0]),
        "dilation_w": step(conv.dilation[1]),
        "kernel_h": p.kernel_rows[1] - p.kernel_rows[0],
        "out_h": height,
        "out_w": width,
        "wgt_base": wgt_base,
        "acc_bank": bank,
        "accumulate": int(accumulate),
        "input_zero_point": conv.input_zero_point,
        "weight_zero_point": conv.weight_zero_point,
    }
    out_tail = tail(job.target.shape[3], out.blocks, lanes)
    if conv.depthwise:
        name = "dwconv"
        values |= {"groups_w": groups_w, "wide": wide, "blocks": blocks, "tail": out_tail}
    else:
        name = "conv"
        values |= {
            "kernel_w": p.kernel_cols[1] - p.kernel_cols[0],
            "in_blocks": p.in_blocks[1] - p.in_blocks[0],
            "out_blocks": blocks,
            "in_tail": tail(job.source.shape[3], p.in_blocks, lanes),
            "out_tail": out_tail,
        }
    accesses = (
        *builder.act(base, piece.size, False),
        Access("wgt", wgt_base, wgt_base + len(chunk) // lanes, False),
        Access(f"acc{bank}", 0, builder.config.acc_rows, True),
    )
    return Step(name, values, job.index, tile, accesses)


def _weights(job: ConvJob, p: Pass, out: Box) -> tuple[bytes, int, int]:
    """Weight rows of one instruction in its order, and for depthwise its column groups and mode."""
    conv, lanes = job.conv, job.builder.config.lanes
    (h0, h1), (w0, w1) = p.kernel_rows, p.kernel_cols
    first, last = out.blocks[0] * lanes, out.blocks[1] * lanes
    part = conv.weight[first:last, h0:h1, w0:w1]
    fill = conv.weight_zero_point
    if conv.depthwise:
        kernel_w = w1 - w0
        wide_columns = -(-kernel_w // 3) * ((out.shape[1] - 1) * conv.stride[1] + 3)
        wide = conv.dilation[1] == 1 and wide_columns < kernel_w * out.shape[1]
        taps = DEPTHWISE_TAPS if wide else 1
        groups = -(-kernel_w // taps)
        rows = np.full((last - first, h1 - h0, groups, DEPTHWISE_TAPS), fill, np.int8)
        padded = np.full((part.shape[0], h1 - h0, groups * taps), fill, np.int8)
        padded[:, :, :kernel_w] = part[..., 0]
        rows[: part.shape[0], :, :, :taps] = padded.reshape(part.shape[0], h1 - h0, groups, taps)
        blocked = rows.reshape(-1, lanes, h1 - h0, groups, DEPTHWISE_TAPS)
        return blocked.transpose(0, 2, 3, 4, 1).tobytes(), groups, int(wide)
    i0, i1 = p.in_blocks[0] * lanes, p.in_blocks[1] * lanes
    part = part[..., i0:i1]
    rows = np.full((last - first, h1 - h0, w1 - w0, i1 - i0), fill, np.int8)
    rows[: part.shape[0], :, :, : part.shape[3]] = part
    blocked = rows.reshape(-1, lanes, h1 - h0, w1 - w0, (i1 - i0) // lanes, lanes)
    # (out block, out lane, kh, kw, in block, in lane) → rows are input lanes, bytes output lanes
    return blocked.transpose(0, 2, 3, 4, 5, 1).tobytes(), 0, 0


def requantize_rows(
    bias: np.ndarray, requantize: Requantize, blocks: Span, lanes: int, name: str
) -> bytes:
    """Two parameter rows a block: bias (int32), multiplier (float32); pad lanes 0 and 1."""
    if requantize.mode != "fp32":
        raise ModelError(f"layer {name}: rounding mode {requantize.mode!r} is not built; use fp32")
    count = (blocks[1] - blocks[0]) * lanes
    part = slice(blocks[0] * lanes, blocks[1] * lanes)
    rows = np.zeros((2, count), np.uint32)
    rows[1] = np.float32(1).view(np.uint32)
    multiplier = np.broadcast_to(requantize.multiplier, bias.shape).astype("<f4")
    check_multipliers(name, multiplier)
    b, m = bias[part].astype("<i4"), multiplier[part]
    rows[0, : len(b)] = b.view(np.uint32)
    rows[1, : len(m)] = m.view(np.uint32)
    return rows.reshape(2, -1, lanes).transpose(1, 0, 2).tobytes()


def _drain_and_store(job: ConvJob, unit: Unit, tile: int, out: Box, bank: int) -> list[Step]:
    builder, requantize = job.builder, job.conv.requantize
    chunk = requantize_rows(
        job.conv.bias, requantize, out.blocks, builder.config.lanes, job.layer.name
    )
    par_base = builder.load_params((job.index, out.blocks), chunk, unit, tile)
    dst_base, _ = builder.outputs.take(None)
    height, width, blocks = out.shape
    values = {
        "acc_bank": bank,
        "out_h": height,
        "out_w": width,
        "blocks": blocks,
        "tail": tail(job.target.shape[3], out.blocks, builder.config.lanes),
        "dst_base": dst_base,
        **dense("dst", out.shape),
        "par_base": par_base,
        "par_stride": 2 if blocks > 1 else 0,
        "zero_point": requantize.zero_point,
        "clamp_min": requantize.clamp_min,
        "clamp_max": requantize.clamp_max,
    }
    accesses = (
        Access(f"acc{bank}", 0, builder.config.acc_rows, True),
        Access("par", par_base * PAR_BEATS, (par_base + 2 * blocks) * PAR_BEATS, False),
        *builder.act(dst_base, out.size, True),
    )
    drain = Step("drain", values, job.index, tile, accesses)
    return [drain, store_box(builder, job.target, out, dst_base, job.index, tile)]
