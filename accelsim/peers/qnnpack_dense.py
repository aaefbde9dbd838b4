"""qnnpack's operators that sum products or windows, on random tensors."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from tvm import relax

from accelsim.artifacts import (
    ConvTranspose2d,
    Pool2d,
)
from accelsim.peers import qdq
from accelsim.peers.bilinear import pytorch_mixed, upscale
from accelsim.peers.case import Trial
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.qnnpack_draw import (
    ONE,
    ZERO,
    Graph,
    fp32,
    qint8,
    quint8,
    scale,
    spread,
    trial,
    weight,
    zero,
)
from accelsim.peers.shapes import convolution

RESIZE_CAUSE = "PyTorch mixes pixels in float32, whose error decides ties that it does not hold"


def conv2d(rng: Generator, rectified: bool = False) -> Trial:
    """Kernel, stride, padding, dilation and groups at random."""
    kernel, stride, dilation = ([int(v) for v in rng.integers(1, n, 2)] for n in (5, 4, 3))
    padding = [int(rng.integers(0, k)) for k in kernel]
    kind = int(rng.integers(4))
    groups = int(rng.integers(2, 12)) if kind < 2 else 1
    each, more = (1, 1) if kind == 0 else (int(v) for v in rng.integers(1, 12, 2))
    size = (int(v) for v in rng.integers(7, 14, 2))
    x = rng.integers(-128, 128, (2, *size, groups * each)).astype(np.int8)
    values, scales, bias = weight(rng, groups * more, each, *kernel)
    sx, zx, zy = scale(rng), zero(rng), zero(rng)
    sy = scale(rng, float(sx * scales.mean()) * spread(values))
    packed = (stride, padding, dilation, groups)
    name = "conv2d_relu" if rectified else "conv2d"

    def kernel_run() -> Any:
        pack = torch.ops.quantized.conv2d_prepack(
            qint8(values, scales), torch.from_numpy(bias), *packed
        )
        return getattr(torch.ops.quantized, name)(quint8(x, sx, zx), pack, float(sy), zy + ZERO)

    product = np.broadcast_to(scales * sx, (groups * more,))
    steps = np.rint(bias * (ONE / product)).astype(np.int32)
    ends = fp32(product * (ONE / sy), zy, zy if rectified else -128)
    dense = np.ascontiguousarray(values.transpose(0, 2, 3, 1))
    sides = (padding[0], padding[1], padding[0], padding[1])
    geometry = ((stride[0], stride[1]), sides, (dilation[0], dilation[1]))
    op = convolution(dense, steps, (zx, 0), ends, groups * each, geometry)
    attributes = {"strides": stride, "padding": sides, "dilation": dilation, "groups": groups}
    body = qdq.convolution(dense, scales.tolist(), bias, float(sx), attributes)
    return trial(x, kernel_run, op, Graph(((sx, zx),), (sy, zy), body, int(rectified)))


def linear(rng: Generator) -> Trial:
    """One weight scale, or one an output channel."""
    rows, depth, out = (int(v) for v in rng.integers(1, 60, 3))
    x = rng.integers(-128, 128, (rows, depth)).astype(np.int8)
    values, scales, bias = weight(rng, out, depth)
    sx, zx, zy = scale(rng), zero(rng), zero(rng)
    sy = scale(rng, float(sx * scales.mean()) * spread(values))

    def kernel() -> Any:
        pack = torch.ops.quantized.linear_prepack(qint8(values, scales), torch.from_numpy(bias))
        return torch.ops.quantized.linear(quint8(x, sx, zx), pack, float(sy), zy + ZERO)

    product = np.broadcast_to(scales * sx, (out,))
    steps = np.rint(bias * (ONE / product)).astype(np.int32)
    ends = fp32(product * (ONE / sy), zy)
    op = convolution(values.reshape(out, 1, 1, depth), steps, (zx, 0), ends, depth)
    graph = Graph(((sx, zx),), (sy, zy), qdq.linear(values, scales.tolist(), bias, float(sx)))
    return trial(x.reshape(rows, 1, 1, depth), kernel, op, graph, flat=True)


def conv_transpose2d(rng: Generator) -> Trial:
    """Transposed convolution with one weight scale."""
    kernel, stride = ([int(v) for v in rng.integers(1, n, 2)] for n in (5, 4))
    padding = [int(rng.integers(0, k)) for k in kernel]
    channels, out = (int(v) for v in rng.integers(1, 14, 2))
    x = rng.integers(-128, 128, (1, 5, 6, channels)).astype(np.int8)
    values = rng.integers(-128, 128, (channels, out, *kernel)).astype(np.int8)
    sw, sx, zx, zy = scale(rng), scale(rng), zero(rng), zero(rng)
    sy = scale(rng, float(sx * sw) * 74 * 74 * math.sqrt(channels * 2) / 60)
    packed = (stride, padding, [0, 0], [1, 1], 1)

    def kernel_run() -> Any:
        pack = torch.ops.quantized.conv_transpose2d_prepack(
            qint8(values, np.array([sw])), None, *packed
        )
        run_kernel = torch.ops.quantized.conv_transpose2d
        return run_kernel(quint8(x, sx, zx), pack, float(sy), zy + ZERO)

    dense = np.ascontiguousarray(values.transpose(1, 2, 3, 0))
    ends = fp32(sw * sx * (ONE / sy), zy)
    places = ((stride[0], stride[1]), (padding[0], padding[1]))
    op = ConvTranspose2d(dense, np.zeros(out, np.int32), zx, 0, ends, *places)
    attributes = {"strides": stride, "padding": padding, "kernel_layout": "IOHW"}
    body = qdq.convolution(dense, [float(sw)], None, float(sx), attributes, transposed=True)
    return trial(x, kernel_run, op, Graph(((sx, zx),), (sy, zy), body))


def pool2d(rng: Generator, kind: str) -> Trial:
    """Average with padding counted as zero, or maximum."""
    kernel, stride = ([int(v) for v in rng.integers(low, 5, 2)] for low in (2, 1))
    padding = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
    x = rng.integers(-128, 128, (2, 9, 11, int(rng.integers(1, 20)))).astype(np.int8)
    sx, zx = scale(rng), zero(rng)
    sides = (padding[0], padding[1], padding[0], padding[1])
    window = ((kernel[0], kernel[1]), (stride[0], stride[1]), sides)
    attributes = {"pool_size": kernel, "strides": stride, "padding": sides}
    if kind == "max":
        op = Pool2d("max", *window, zx, None)
        body = qdq.call(relax.op.nn.max_pool2d, **attributes)
        pool: Any = functional.max_pool2d
    else:
        count = np.float32(kernel[0] * kernel[1])
        op = Pool2d("sum", *window, zx, fp32(sx / (sx * count), zx))
        body = qdq.call(relax.op.nn.avg_pool2d, **attributes, count_include_pad=True)
        pool = functional.avg_pool2d
    graph = Graph(((sx, zx),), (sx, zx), body)
    return trial(x, lambda: pool(quint8(x, sx, zx), kernel, stride, padding), op, graph)


def global_average(rng: Generator) -> Trial:
    """The mean of a whole image."""
    h, w, c = (int(v) for v in (*rng.integers(1, 9, 2), rng.integers(16, 60)))
    x = rng.integers(-128, 128, (2, h, w, c)).astype(np.int8)
    sx, zx = scale(rng), zero(rng)
    multiplier = sx / (sx * np.float32(h * w))
    op = Pool2d("sum", (h, w), (1, 1), (0, 0, 0, 0), zx, fp32(multiplier, zx))
    body = qdq.call(relax.op.nn.adaptive_avg_pool2d, output_size=(1, 1))
    graph = Graph(((sx, zx),), (sx, zx), body)
    return trial(x, lambda: functional.adaptive_avg_pool2d(quint8(x, sx, zx), 1), op, graph)


def upsample_bilinear(rng: Generator) -> Trial:
    """Pixel centres or aligned corners; stored integers are mixed, whatever the zero point."""
    drawn = upscale(rng, ("half_pixel", "align_corners"))
    x = rng.integers(-128, 128, drawn.shape).astype(np.int8)
    sx, zx = scale(rng), zero(rng)
    op = drawn.layer(0, fp32(sx / (sx * np.float32(drawn.total)), 0))
    resize = partial(
        functional.interpolate,
        size=drawn.target,
        mode="bilinear",
        align_corners=drawn.mode == "align_corners",
    )
    graph = Graph(((sx, zx),), (sx, zx), drawn.body("NCHW"))
    found = trial(x, lambda: resize(quint8(x, sx, zx)), op, graph)
    stored_zero = np.float32(zx + ZERO)
    mixed = pytorch_mixed(x.astype(np.int16) + ZERO, drawn) - stored_zero
    known = (np.rint(mixed + stored_zero) - ZERO).astype(np.int8)
    return replace(found, alternative={"y0": known}, cause=RESIZE_CAUSE)


DENSE: dict[str, Maker] = {
    "conv2d": conv2d,
    "conv2d_relu": partial(conv2d, rectified=True),
    "linear": linear,
    "conv_transpose2d": conv_transpose2d,
    "avg_pool2d": partial(pool2d, kind="average"),
    "max_pool2d": partial(pool2d, kind="max"),
    "adaptive_avg_pool2d": global_average,
    "upsample_bilinear2d": upsample_bilinear,
}
