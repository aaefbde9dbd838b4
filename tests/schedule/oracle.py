"""Layers computed by NumPy in int64 and float32, without tiles: what a schedule must reproduce."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from accelsim.artifacts import Add, Conv2d, Pool2d, Region, Requantize


def run(region: Region, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every tensor of a region as (n, h, w, c) int8."""
    tensors = dict(inputs)
    for layer in region.layers:
        shape = region.tensors[layer.output].shape
        values = [tensors[name] for name in layer.inputs]
        compute = layer.compute
        if isinstance(compute, Conv2d):
            tensors[layer.output] = conv(values[0], compute, shape)
        elif isinstance(compute, Add):
            tensors[layer.output] = add(values[0], values[1], compute)
        else:
            tensors[layer.output] = pool(values[0], compute, shape)
    return tensors


def requantize(acc: np.ndarray, r: Requantize) -> np.ndarray:
    scaled = np.rint(acc.astype(np.int32).astype(np.float32) * r.multiplier).astype(np.float64)
    return np.clip(scaled + r.zero_point, r.clamp_min, r.clamp_max).astype(np.int8)


def windows(
    x: np.ndarray,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
    out: tuple[int, int],
    fill: int,
) -> np.ndarray:
    """(n, oh, ow, kh, kw, c) of an int64 tensor padded with `fill`."""
    top, left, bottom, right = padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    rows = np.arange(out[0])[:, None] * stride[0] + np.arange(kernel[0]) * dilation[0]
    cols = np.arange(out[1])[:, None] * stride[1] + np.arange(kernel[1]) * dilation[1]
    return padded[:, rows[:, None, :, None], cols[None, :, None, :]]


def conv(x: np.ndarray, c: Conv2d, shape: tuple[int, ...]) -> np.ndarray:
    w = c.weight.astype(np.int64) - c.weight_zero_point
    centred = x.astype(np.int64) - c.input_zero_point
    patches = windows(centred, w.shape[1:3], c.stride, c.padding, c.dilation, shape[1:3], 0)
    if c.depthwise:
        acc = np.einsum("nhwklc,ckl->nhwc", patches, w[..., 0])
    else:
        acc = np.einsum("nhwklc,oklc->nhwo", patches, w, optimize=True)
    return requantize(acc + c.bias, c.requantize)


def add(a: np.ndarray, b: np.ndarray, p: Add) -> np.ndarray:
    if p.fixed is not None:
        factors = (p.fixed.a_multiplier, p.fixed.b_multiplier)
        total = (a.astype(np.int64) - p.a_zero_point) * factors[0]
        total += (b.astype(np.int64) - p.b_zero_point) * factors[1]
        # Sums of at most 31 bits are exact in float64, halves included.
        real = total / 2.0**p.fixed.shift
        rounded = np.copysign(np.floor(np.abs(real) + 0.5), real)
        return np.clip(rounded + p.zero_point, p.clamp_min, p.clamp_max).astype(np.int8)
    left = (a.astype(np.float32) - np.float32(p.a_zero_point)) * p.a_scale
    right = (b.astype(np.float32) - np.float32(p.b_zero_point)) * p.b_scale
    scaled = np.rint((left + right) * p.inverse_output_scale)
    return np.clip(scaled + p.zero_point, p.clamp_min, p.clamp_max).astype(np.int8)


def pool(x: np.ndarray, p: Pool2d, shape: tuple[int, ...]) -> np.ndarray:
    fill = -128 if p.kind == "max" else p.input_zero_point
    wide = x.astype(np.int64)
    patches = windows(wide, p.kernel, p.stride, p.padding, (1, 1), shape[1:3], fill)
    if p.kind == "max":
        return np.clip(patches.max((3, 4)), p.clamp_min, p.clamp_max).astype(np.int8)
    assert p.requantize is not None
    return requantize((patches - p.input_zero_point).sum((3, 4)), p.requantize)
