"""Layers computed by NumPy in int64 and float32, without tiles: what a schedule must reproduce."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from accelsim.artifacts import (
    Add,
    Assemble,
    Binary,
    Conv2d,
    ConvTranspose2d,
    Extremum,
    LayerNorm,
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
from accelsim.spec import normalization
from tests.schedule.rounding import scaled, tflite

Values = list[np.ndarray]
Shape = tuple[int, ...]


def run(region: Region, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every tensor of a region as (n, h, w, c) int8."""
    tensors = dict(inputs)
    for layer in region.layers:
        shape = region.tensors[layer.output].shape
        values = [tensors[name] for name in layer.inputs]
        tensors[layer.output] = compute(layer.compute, values, shape)
    return tensors


def requantize(acc: np.ndarray, r: Requantize) -> np.ndarray:
    """int32 sums, channels last, to int8."""
    total = scaled(acc, r) + r.zero_point
    return np.clip(total, r.clamp_min, r.clamp_max).astype(np.int8)


@singledispatch
def compute(op: Any, values: Values, shape: Shape) -> np.ndarray:
    """The output of one layer, of the given shape."""
    raise NotImplementedError(type(op).__name__)


def windows(
    x: np.ndarray,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
    out: tuple[int, ...],
    fill: int,
) -> np.ndarray:
    """(n, oh, ow, kh, kw, c) of an int64 tensor padded with `fill`, further than need be."""
    top, left, *_ = padding
    after = [(o - 1) * s + (k - 1) * d for o, s, k, d in zip(out, stride, kernel, dilation)]  # noqa: B905
    padded = np.pad(
        x, ((0, 0), (top, after[0] + 1), (left, after[1] + 1), (0, 0)), constant_values=fill
    )
    rows = np.arange(out[0])[:, None] * stride[0] + np.arange(kernel[0]) * dilation[0]
    cols = np.arange(out[1])[:, None] * stride[1] + np.arange(kernel[1]) * dilation[1]
    return padded[:, rows[:, None, :, None], cols[None, :, None, :]]


@compute.register
def conv(c: Conv2d, values: Values, shape: Shape) -> np.ndarray:
    w = c.weight.astype(np.int64) - c.weight_zero_point
    centred = values[0].astype(np.int64) - c.input_zero_point
    patches = windows(centred, w.shape[1:3], c.stride, c.padding, c.dilation, shape[1:3], 0)
    if c.depthwise:
        acc = np.einsum("nhwklc,ckl->nhwc", patches, w[..., 0])
    else:
        acc = np.einsum("nhwklc,oklc->nhwo", patches, w, optimize=True)
    return requantize(acc + c.bias, c.requantize)


@compute.register
def conv_transpose(c: ConvTranspose2d, values: Values, shape: Shape) -> np.ndarray:
    """Every input element adds its window of outputs."""
    w = c.weight.astype(np.int64) - c.weight_zero_point
    x = values[0].astype(np.int64) - c.input_zero_point
    acc = np.zeros(shape, np.int64)
    for i, j in np.ndindex(x.shape[1:3]):
        for y, z in np.ndindex(w.shape[1:3]):
            row = i * c.stride[0] + y * c.dilation[0] - c.padding[0]
            col = j * c.stride[1] + z * c.dilation[1] - c.padding[1]
            if 0 <= row < shape[1] and 0 <= col < shape[2]:
                acc[:, row, col] += x[:, i, j] @ w[:, y, z].T
    return requantize(acc + c.bias, c.requantize)


@compute.register
def matmul(m: MatMul, values: Values, _: Shape) -> np.ndarray:
    a = values[0].astype(np.int64) - m.a_zero_point
    b = values[1].astype(np.int64) - m.b_zero_point
    return requantize(a @ (b.swapaxes(2, 3) if m.transpose_b else b), m.requantize)


@compute.register
def add(p: Add, values: Values, _: Shape) -> np.ndarray:
    a, b = (v.astype(np.int64) for v in _operands(values, p.constant))
    a, b, sign = a - p.a_zero_point, b - p.b_zero_point, -1 if p.subtract else 1
    if p.fixed is not None:
        total = a * p.fixed.a_multiplier + sign * b * p.fixed.b_multiplier
        # Sums of at most 31 bits are exact in float64, halves included.
        real = total / 2.0**p.fixed.shift
        rounded = np.copysign(np.floor(np.abs(real) + 0.5), real)
    elif p.tflite is not None:
        t = p.tflite
        left = tflite(a << 20, t.a_mantissa, t.a_shift)
        right = tflite(b << 20, t.b_mantissa, t.b_shift)
        rounded = tflite(left + sign * right, t.mantissa, t.shift)
    else:
        left = a.astype(np.float32) * p.a_scale
        second = p.b_scale if p.b_scales is None else p.b_scales
        right = b.astype(np.float32) * second * np.float32(sign)
        rounded = np.rint((left + right) * p.inverse_output_scale)
    return np.clip(rounded + p.zero_point, p.clamp_min, p.clamp_max).astype(np.int8)


def _operands(values: Values, constant: np.ndarray | None) -> Values:
    return [values[0], values[1] if constant is None else constant]


@compute.register
def binary(p: Binary, values: Values, _: Shape) -> np.ndarray:
    a, b = (v.astype(np.int64) for v in _operands(values, p.constant))
    if p.a_requantize is not None:
        a = requantize(a - p.a_source_zero_point, p.a_requantize).astype(np.int64)
    if p.b_requantize is not None:
        b = requantize(b - p.b_source_zero_point, p.b_requantize).astype(np.int64)
    kinds = {"multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
    return requantize(kinds[p.kind](a - p.a_zero_point, b - p.b_zero_point), p.requantize)


@compute.register
def prelu(p: PRelu, values: Values, _: Shape) -> np.ndarray:
    x = values[0].astype(np.float32) - np.float32(p.input_zero_point)
    above = np.maximum(x, np.float32(0)) * p.positive_scale
    below = np.minimum(x, np.float32(0)) * p.negative_scale
    rounded = np.rint((above + below) * p.inverse_output_scale)
    return np.clip(rounded + p.zero_point, p.clamp_min, p.clamp_max).astype(np.int8)


@compute.register
def extremum(p: Extremum, values: Values, shape: Shape) -> np.ndarray:
    sign = 1 if p.kind == "max" else -1
    wide = sign * values[0].astype(np.int64)
    if p.adaptive:
        rows, cols = (
            [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)]
            for n, o in zip(wide.shape[1:3], shape[1:3], strict=True)
        )
        parts = [[wide[:, a:b, c:d].max((1, 2)) for c, d in cols] for a, b in rows]
        found = np.asarray(parts).transpose(2, 0, 1, 3)
    else:
        options = p.kernel, p.stride, p.padding, p.dilation, shape[1:3]
        found = windows(wide, *options, -1000).max((3, 4))
    return p.table[sign * found + 128]


@compute.register
def pool(p: Pool2d, values: Values, shape: Shape) -> np.ndarray:
    fill = -128 if p.kind == "max" else p.input_zero_point
    wide = values[0].astype(np.int64)
    options = p.kernel, p.stride, p.padding, (1, 1), shape[1:3]
    patches = windows(wide, *options, fill)
    if p.kind == "max":
        return np.clip(patches.max((3, 4)), p.clamp_min, p.clamp_max).astype(np.int8)
    total = (patches - p.input_zero_point).sum((3, 4))
    if not p.by_count:
        assert p.requantize is not None
        return requantize(total, p.requantize)
    inside = windows(np.ones_like(wide), *options, 0).sum((3, 4))
    result = np.zeros(shape, np.int8)
    for count, end in ((0, p.by_count[0][1]), *p.by_count):
        result = np.where(inside == count, requantize(total, end), result)
    return result


@compute.register
def lookup(p: Lookup, values: Values, _: Shape) -> np.ndarray:
    return p.table[values[0].astype(np.int64) + 128]


@compute.register
def softmax(p: Softmax, values: Values, _: Shape) -> np.ndarray:
    shares = _masked(p, *values) if p.masked else normalization.softmax(values[0], p.table)
    return shares if p.levels is None else p.levels[shares.astype(np.int64) + 128]


def _masked(p: Softmax, scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Rows of what is kept alone, each by itself; the share of what is hidden is 0."""
    kept = np.broadcast_to(mask == 127, scores.shape)
    shares = np.full(scores.shape, -128, np.int8)
    for place in np.ndindex(scores.shape[:3]):
        row = scores[place].astype(np.int64)
        if not kept[place].any():
            shares[place] = normalization.softmax(np.zeros(row.shape, np.int8), p.table)
            continue
        near = kept[place] & (row > row[kept[place]].max() - 255)
        shares[place][near] = normalization.softmax(row[near].astype(np.int8), p.table)
    return shares


@compute.register
def layer_norm(p: LayerNorm, values: Values, _: Shape) -> np.ndarray:
    return normalization.layer_norm(
        values[0],
        p.gain,
        p.offset,
        p.gain_bits,
        p.epsilon << p.epsilon_shift,
        (p.zero_point, p.clamp_min, p.clamp_max),
    )


@compute.register
def resize(p: Resize2d, values: Values, shape: Shape) -> np.ndarray:
    """Output by output, of an input that has a row and a column of zeros behind it."""
    x = np.pad(values[0].astype(np.int64) - p.input_zero_point, ((0, 0), (0, 1), (0, 1), (0, 0)))
    acc = np.zeros(shape, np.int64)
    for i, j in np.ndindex(shape[1:3]):
        rows = slice(p.rows.first[i], p.rows.first[i] + 2)
        cols = slice(p.columns.first[j], p.columns.first[j] + 2)
        acc[:, i, j] = np.einsum(
            "nhwc,h,w->nc", x[:, rows, cols], p.rows.weight[i], p.columns.weight[j]
        )
    return requantize(acc, p.requantize)


@compute.register
def assemble(p: Assemble, values: Values, shape: Shape) -> np.ndarray:
    if p.seen is not None:
        values = [values[0].reshape(p.seen[0])]
    result = np.full(shape if p.seen is None else p.seen[1], p.fill, np.int8)
    for piece in p.pieces:
        taken = values[piece.input][np.ix_(*piece.take)]
        if piece.requantize is not None:
            taken = requantize(taken.astype(np.int64) - piece.input_zero_point, piece.requantize)
        if piece.table is not None:
            taken = piece.table[taken.astype(np.int64) + 128]
        result[np.ix_(*piece.place)] = taken
    return result.reshape(shape)


@compute.register
def transpose(p: Transpose, values: Values, shape: Shape) -> np.ndarray:
    seen = values[0].shape if p.seen is None else p.seen[0]
    return values[0].reshape(seen).transpose(p.axes).reshape(shape)
