"""Layers computed by NumPy as the specification's arithmetic defines them, without tiles.

What comes in: a region and its inputs. What goes out: every tensor. It tells whether a difference
from a peer lies in what a layer states, or in the NPU that runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import (
    I8,
    Add,
    Assemble,
    Binary,
    Conv2d,
    ConvTranspose2d,
    LayerOp,
    Lookup,
    MatMul,
    Pool2d,
    PRelu,
    Region,
    Requantize,
    Resize2d,
    Softmax,
    Transpose,
)
from accelsim.errors import ModelError
from accelsim.spec import arithmetic, normalization

Shape = tuple[int, int, int, int]
Values = NDArray[np.int64]


def tensors(region: Region, inputs: Mapping[str, I8]) -> dict[str, I8]:
    """Every tensor of a region. An array whose size fits is given the shape that a layer reads."""
    found = dict(inputs)
    for layer in region.layers:
        values = [found[name].reshape(region.tensors[name].shape) for name in layer.inputs]
        found[layer.output] = compute(layer.compute, values, region.tensors[layer.output].shape)
    return found


def compute(op: LayerOp, inputs: Sequence[I8], shape: Shape) -> I8:
    """Output of one layer, int8 of `shape`. Raises ModelError for an operator without a model."""
    x = inputs[0]
    match op:
        case Conv2d():
            return _conv(x, op, shape)
        case ConvTranspose2d():
            return _transposed(x, op, shape)
        case MatMul():
            b = inputs[1].astype(np.int64) - op.b_zero_point
            b = b.swapaxes(2, 3) if op.transpose_b else b
            return requantize((x.astype(np.int64) - op.a_zero_point) @ b, op.requantize)
        case Add():
            return _add(x, op.constant if op.constant is not None else inputs[1], op)
        case Binary():
            b = (op.constant if op.constant is not None else inputs[1]).astype(np.int64)
            left, right = np.broadcast_arrays(x.astype(np.int64), b)
            values = arithmetic.binary(op.kind, left - op.a_zero_point, right - op.b_zero_point)
            return requantize(values, op.requantize)
        case PRelu():
            return _prelu(x, op)
        case Pool2d():
            return _pool(x, op, shape)
        case Lookup():
            return op.table[x.astype(np.int64) + 128]
        case Softmax():
            return normalization.softmax(x, op.table)
        case Assemble():
            return _assemble(inputs, op, shape)
        case Resize2d():
            return _resize(x, op)
        case Transpose():
            return np.ascontiguousarray(x.transpose(op.axes))
        case _:
            raise ModelError(f"no model of {type(op).__name__}")


def requantize(accumulator: Values, r: Requantize) -> I8:
    """int32 (…, channels) → int8."""
    wrapped = arithmetic.wrap32(accumulator)
    if r.mode == "fp32":
        scaled = arithmetic.scale_fp32(wrapped, r.multiplier.astype(np.float32))
    else:
        assert r.shift is not None
        words = r.multiplier.astype(np.int64)
        scaled = arithmetic.scale(r.mode, wrapped, words, r.shift)
    return arithmetic.finish(scaled, r.zero_point, r.clamp_min, r.clamp_max)


def windows(
    x: Values,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
    out: tuple[int, ...],
    fill: int,
) -> Values:
    """(n, oh, ow, kh, kw, c) of an (n, h, w, c) tensor padded with `fill`."""
    top, left, bottom, right = padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    rows = np.arange(out[0])[:, None] * stride[0] + np.arange(kernel[0]) * dilation[0]
    cols = np.arange(out[1])[:, None] * stride[1] + np.arange(kernel[1]) * dilation[1]
    chosen: Values = padded[:, rows[:, None, :, None], cols[None, :, None, :]]
    return chosen


def _conv(x: I8, op: Conv2d, shape: Shape) -> I8:
    weight = op.weight.astype(np.int64) - op.weight_zero_point
    centred = x.astype(np.int64) - op.input_zero_point
    kernel = (weight.shape[1], weight.shape[2])
    patches = windows(centred, kernel, op.stride, op.padding, op.dilation, shape[1:3], 0)
    if op.depthwise:
        products = np.einsum("nhwklc,ckl->nhwc", patches, weight[..., 0])
    else:  # float64 is exact: products are below 2^17, and there are fewer than 2^36 of them
        rows = patches.reshape(-1, weight[0].size).astype(np.float64)
        products = (rows @ weight.reshape(weight.shape[0], -1).T.astype(np.float64)).astype(
            np.int64
        )
    return requantize(products.reshape(shape) + op.bias, op.requantize)


def _transposed(x: I8, op: ConvTranspose2d, shape: Shape) -> I8:
    """Every input element is spread over its window; what falls outside is cut off."""
    weight = op.weight.astype(np.int64) - op.weight_zero_point
    centred = x.astype(np.int64) - op.input_zero_point
    total = np.zeros(shape, np.int64)
    _, rows, cols, _ = weight.shape
    for y in range(rows):
        for z in range(cols):
            part = centred @ weight[:, y, z].T
            i = np.arange(x.shape[1]) * op.stride[0] + y * op.dilation[0] - op.padding[0]
            j = np.arange(x.shape[2]) * op.stride[1] + z * op.dilation[1] - op.padding[1]
            keep_i, keep_j = (i >= 0) & (i < shape[1]), (j >= 0) & (j < shape[2])
            chosen = part[:, keep_i][:, :, keep_j]
            total[:, i[keep_i][:, None], j[keep_j][None, :]] += chosen
    return requantize(total + op.bias, op.requantize)


def _add(a: I8, b: I8, op: Add) -> I8:
    left = a.astype(np.int64) - op.a_zero_point
    right = b.astype(np.int64) - op.b_zero_point
    left, right = np.broadcast_arrays(left, right)
    if op.tflite is not None:
        t = op.tflite
        numbers = (t.a_mantissa, t.b_mantissa, t.mantissa, t.a_shift, t.b_shift, t.shift)
        words = tuple(np.array(number) for number in numbers)
        total = arithmetic.add_tflite(left, right, words, op.subtract)
    elif op.fixed is not None:
        f = op.fixed
        words = tuple(np.array(x) for x in (f.a_multiplier, f.b_multiplier, f.shift))
        total = arithmetic.add_fixed(left, right, words[0], words[1], words[2], op.subtract)
    else:
        second = op.b_scale if op.b_scales is None else op.b_scales
        scales = (op.a_scale, second, op.inverse_output_scale)
        sa, sb, inverse = (np.asarray(scale, np.float32) for scale in scales)
        total = arithmetic.add_fp32(left, right, sa, sb, inverse, op.subtract)
    return arithmetic.finish(total, op.zero_point, op.clamp_min, op.clamp_max)


def _prelu(x: I8, op: PRelu) -> I8:
    centred = x.astype(np.int64) - op.input_zero_point
    scales = (op.positive_scale, op.negative_scale, op.inverse_output_scale)
    positive, negative, inverse = (np.asarray(scale, np.float32) for scale in scales)
    over, under = np.maximum(centred, 0), np.minimum(centred, 0)
    total = arithmetic.add_fp32(over, under, positive, negative, inverse)
    return arithmetic.finish(total, op.zero_point, op.clamp_min, op.clamp_max)


def _pool(x: I8, op: Pool2d, shape: Shape) -> I8:
    values = x.astype(np.int64)
    geometry = (op.kernel, op.stride, op.padding, (1, 1), shape[1:3])
    if op.kind == "max":
        largest = windows(values, *geometry, -128).max(axis=(3, 4))
        return arithmetic.finish(largest, 0, op.clamp_min, op.clamp_max)
    totals = windows(values - op.input_zero_point, *geometry, 0).sum(axis=(3, 4))
    assert op.requantize is not None
    if not op.by_count:
        return requantize(totals, op.requantize)
    inside = windows(np.ones((1, *x.shape[1:3], 1), np.int64), *geometry, 0).sum(axis=(3, 4))
    counts = np.broadcast_to(inside, shape)
    result = np.zeros(shape, np.int8)
    known = dict(op.by_count)
    for count in np.unique(counts):
        chosen = requantize(totals, known.get(int(count), op.requantize))
        result = np.where(counts == count, chosen, result)
    return result


def _assemble(inputs: Sequence[I8], op: Assemble, shape: Shape) -> I8:
    result = np.full(shape, op.fill, np.int8)
    for piece in op.pieces:
        part = inputs[piece.input][np.ix_(*piece.take)]
        if piece.requantize is not None:
            part = requantize(part.astype(np.int64) - piece.input_zero_point, piece.requantize)
        elif piece.table is not None:
            part = piece.table[part.astype(np.int64) + 128]
        result[np.ix_(*piece.place)] = part
    return result


def _resize(x: I8, op: Resize2d) -> I8:
    """Rows are mixed first, then columns, in whole numbers."""
    total = x.astype(np.int64) - op.input_zero_point
    for axis, line in ((1, op.rows), (2, op.columns)):
        shape = [-1 if k == axis else 1 for k in range(4)]
        behind = np.minimum(line.first + 1, total.shape[axis] - 1)
        total = sum(
            total.take(places, axis) * line.weight[:, tap].reshape(shape)
            for tap, places in enumerate((line.first, behind))
        )
    return requantize(total, op.requantize)
