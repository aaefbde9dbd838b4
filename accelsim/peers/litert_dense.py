"""Random models whose layers sum products or windows: convolutions, products, pooling, mean.

What comes in: a random generator. What goes out: a `Trial` with LiteRT's outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import I8, I32, ConvTranspose2d, MatMul, Pool2d
from accelsim.peers import qdq
from accelsim.peers import tflite_rules as rules
from accelsim.peers.case import Trial
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.litert_draw import (
    VALID,
    Graph,
    activation_limits,
    int8s,
    like,
    power,
    same_or_valid,
    scale,
    trial,
    trial2,
    zero,
)
from accelsim.peers.litert_model import TfliteTensor, constant, tflite_model
from accelsim.peers.shapes import average, convolution, integer_scale, sides


@dataclass(frozen=True, slots=True)
class Weights:
    """Random weights with their scales, and a bias in steps of source · scale."""

    values: I8  # (out, h, w, in)
    scales: tuple[float, ...]
    bias: I32


def weights(rng: Generator, shape: tuple[int, ...], per_channel: bool) -> Weights:
    """Weights within ±127, as TFLite demands."""
    values = rng.integers(-127, 128, shape).astype(np.int8)
    count = shape[0] if per_channel else 1
    drawn = np.exp(rng.uniform(np.log(0.002), np.log(0.02), count))
    powers = bool(rng.integers(2))
    scales = tuple(power(one) if powers else float(np.float32(one)) for one in drawn)
    bias = rng.integers(-4000, 4000, shape[0]).astype(np.int32)
    return Weights(values, scales, bias)


def output_scale(source: float, w: Weights) -> float:
    """A scale with which outputs spread over int8 and saturate a little."""
    taps = float(np.sqrt(w.values[0].size))
    return like(source * float(np.mean(w.scales)) * 74 * 74 * taps / 60, source, *w.scales)


def bias_tensor(source: float, w: Weights) -> TfliteTensor:
    """The bias as a model holds it."""
    scales = tuple(float(np.float32(source) * np.float32(one)) for one in w.scales)
    return TfliteTensor(w.bias.shape, scales, 0, "int32", values=w.bias)


def conv_2d(rng: Generator, depthwise: bool = False) -> Trial:
    """Kernel, stride, dilation, padding, groups and fused activation at random."""
    size = tuple(int(v) for v in rng.integers(7, 15, 2))
    kernel = tuple(int(v) for v in rng.integers(1, 5, 2))
    strided = bool(rng.integers(2))
    stride = tuple(int(v) for v in rng.integers(1, 4, 2)) if strided else (1, 1)
    dilation = (1, 1) if strided else tuple(int(v) for v in rng.integers(1, 3, 2))
    kind, fused = int(rng.integers(2)), int(rng.integers(4))
    channels, groups = int(rng.integers(1, 20)), 1
    out = channels * int(rng.integers(1, 3)) if depthwise else int(rng.integers(1, 20))
    if depthwise:
        groups, stride = channels, (stride[0], stride[0])
    elif rng.integers(3) == 0:
        groups = int(rng.integers(2, 4))
        channels, out = groups * int(rng.integers(1, 6)), groups * int(rng.integers(1, 6))
    source, zin, zout = scale(rng), zero(rng), zero(rng)
    w = weights(rng, (out, *kernel, channels // groups), per_channel=bool(rng.integers(4)))
    to = output_scale(source, w)
    axes = [same_or_valid(*a, kind) for a in zip(size, kernel, stride, dilation, strict=True)]
    rows, cols = axes
    shape = (1, rows[0], cols[0], out)
    x = int8s(rng, int(rng.integers(1, 3)), *size, channels)
    shape = (x.shape[0], *shape[1:])
    stored = w.values.transpose(3, 1, 2, 0) if depthwise else w.values
    options: dict[str, Any] = {
        "padding": kind,
        "strideH": stride[0],
        "strideW": stride[1],
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
        "fusedActivationFunction": fused,
    }
    if depthwise:
        options["depthMultiplier"] = out // channels
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    model = tflite_model(
        name,
        [
            TfliteTensor(x.shape, (source,), zin),
            TfliteTensor(stored.shape, w.scales, axis=3 if depthwise else 0, values=stored),
            bias_tensor(source, w),
        ],
        [TfliteTensor(shape, (to,), zout)],
        "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions",
        version=3,
        **options,
    )
    reals = rules.conv_multipliers(source, w.scales, to)
    reals = reals * (out // len(reals))
    ends = rules.requantize("tflite", reals, zout, activation_limits(fused, to, zout))
    before = (rows[1], cols[1])
    pair = (stride[0], stride[1])
    wide = (dilation[0], dilation[1])
    taps = (kernel[0], kernel[1])
    padding = sides((size[0], size[1]), (rows[0], cols[0]), taps, pair, wide, before)
    op = convolution(w.values, w.bias, (zin, 0), ends, channels, (pair, padding, wide))
    attributes = {"strides": pair, "padding": padding, "dilation": wide, "groups": groups}
    body = qdq.convolution(w.values, w.scales, w.bias, source, attributes)
    graph = Graph(((source, zin),), (to, zout), body, fused, images=True)
    return trial(x, model, op, (shape[0], shape[1], shape[2], shape[3]), graph)


def depthwise_conv_2d(rng: Generator) -> Trial:
    """Depthwise, with a channel multiplier."""
    return conv_2d(rng, depthwise=True)


def fully_connected(rng: Generator) -> Trial:
    """One weight scale, or one a channel; single rounding, half away from zero."""
    rows, depth, out = (int(v) for v in rng.integers(1, 80, 3))
    source, zin, zout = scale(rng), zero(rng), zero(rng)
    w = weights(rng, (out, 1, 1, depth), per_channel=bool(rng.integers(2)))
    to, fused = output_scale(source, w), int(rng.integers(4))
    model = tflite_model(
        "FULLY_CONNECTED",
        [
            TfliteTensor((rows, depth), (source,), zin),
            TfliteTensor((out, depth), w.scales, values=w.values.reshape(out, depth)),
            bias_tensor(source, w),
        ],
        [TfliteTensor((rows, out), (to,), zout)],
        "FullyConnectedOptions",
        version=5,
        fusedActivationFunction=fused,
    )
    reals = rules.conv_multipliers(source, w.scales, to)
    reals = reals * (out // len(reals))
    ends = rules.requantize("half_away", reals, zout, activation_limits(fused, to, zout))
    op = convolution(w.values, w.bias, (zin, 0), ends, depth)
    x = int8s(rng, rows, depth)
    body = qdq.linear(w.values.reshape(out, depth), w.scales, w.bias, source)
    graph = Graph(((source, zin),), (to, zout), body, fused)
    return trial(x, model, op, (rows, 1, 1, out), graph)


def transpose_conv(rng: Generator) -> Trial:
    """Transposed convolution, with VALID or SAME padding."""
    size = tuple(int(v) for v in rng.integers(2, 8, 2))
    kernel = tuple(int(v) for v in rng.integers(2, 5, 2))
    stride = tuple(int(v) for v in rng.integers(1, 3, 2))
    channels, out = (int(v) for v in rng.integers(1, 12, 2))
    source, zin, zout, kind = scale(rng), zero(rng), zero(rng), int(rng.integers(2))
    w = weights(rng, (out, *kernel, channels), per_channel=True)
    to = output_scale(source, w)
    axes = zip(size, kernel, stride, strict=True)
    if kind == VALID:
        shape = (1, *((s - 1) * t + k for s, k, t in axes), out)
        before = (0, 0)
    else:
        shape = (1, *(s * t for s, _, t in axes), out)
        places = zip(size, kernel, stride, strict=True)
        before_rows, before_cols = (max(0, (s - 1) * t + k - s * t) // 2 for s, k, t in places)
        before = (before_rows, before_cols)
    x = int8s(rng, 1, *size, channels)
    model = tflite_model(
        "TRANSPOSE_CONV",
        [
            constant(shape),
            TfliteTensor(w.values.shape, w.scales, values=w.values),
            TfliteTensor(x.shape, (source,), zin),
            bias_tensor(source, w),
        ],
        [TfliteTensor(shape, (to,), zout)],
        "TransposeConvOptions",
        version=3,
        padding=kind,
        strideH=stride[0],
        strideW=stride[1],
    )
    ends = rules.requantize("tflite", rules.conv_multipliers(source, w.scales, to), zout)
    op = ConvTranspose2d(w.values, w.bias, zin, 0, ends, (stride[0], stride[1]), before)
    ends_at = zip(shape[1:3], size, kernel, stride, before, strict=True)
    after = [(s - 1) * t + k - b - n for n, s, k, t, b in ends_at]
    extra = [max(0, -a) for a in after]
    attributes = {
        "strides": stride,
        "padding": (*before, *(max(0, a) for a in after)),
        "output_padding": extra,
        "kernel_layout": "IOHW",
    }
    body = qdq.convolution(w.values, w.scales, w.bias, source, attributes, transposed=True)
    graph = Graph(((source, zin),), (to, zout), body, images=True)
    return trial(x, model, op, (shape[0], shape[1], shape[2], shape[3]), graph)


def batch_matmul(rng: Generator) -> Trial:
    """Two activations, the second transposed or not."""
    n, h = (int(v) for v in rng.integers(1, 4, 2))
    rows, depth, columns = (int(v) for v in rng.integers(1, 30, 3))
    turned = bool(rng.integers(2))
    a = int8s(rng, n, h, rows, depth)
    b = int8s(rng, n, h, *((columns, depth) if turned else (depth, columns)))
    sa, sb, za, zb, zout = scale(rng), scale(rng), zero(rng), zero(rng), zero(rng)
    to = like(sa * sb * 74 * 74 * np.sqrt(depth) / 60, sa, sb)
    shape = (n, h, rows, columns)
    model = tflite_model(
        "BATCH_MATMUL",
        [TfliteTensor(a.shape, (sa,), za), TfliteTensor(b.shape, (sb,), zb)],
        [TfliteTensor(shape, (to,), zout)],
        "BatchMatMulOptions",
        version=2,
        adjY=turned,
    )
    ends = rules.requantize("tflite", [rules.matmul_multiplier(sa, sb, to)], zout)

    def body(build: Any, values: list[Any]) -> Any:
        second = values[1]
        if turned:
            second = build.emit(relax.op.permute_dims(second, [0, 1, 3, 2]))
        return build.emit(relax.op.matmul(values[0], second))

    graph = Graph(((sa, za), (sb, zb)), (to, zout), body)
    return trial2(a, b, model, MatMul(za, zb, turned, ends), shape, graph)


def pool_2d(rng: Generator, kind: str) -> Trial:
    """Average over what lies inside, or maximum."""
    size = (int(rng.integers(4, 14)), int(rng.integers(4, 14)))
    kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    where, fused, channels = int(rng.integers(2)), int(rng.integers(4)), int(rng.integers(1, 20))
    s, z = scale(rng), zero(rng)
    axes = zip(size, kernel, stride, strict=True)
    rows, cols = (same_or_valid(*axis, 1, where) for axis in axes)
    x = int8s(rng, 2, *size, channels)
    shape = (2, rows[0], cols[0], channels)
    model = tflite_model(
        f"{kind}_POOL_2D",
        [TfliteTensor(x.shape, (s,), z)],
        [TfliteTensor(shape, (s,), z)],
        "Pool2DOptions",
        version=2,
        padding=where,
        strideH=stride[0],
        strideW=stride[1],
        filterHeight=kernel[0],
        filterWidth=kernel[1],
        fusedActivationFunction=fused,
    )
    out = (rows[0], cols[0])
    padding = sides(size, out, kernel, stride, (1, 1), (rows[1], cols[1]))
    limits = activation_limits(fused, s, z)
    if kind == "MAX":
        op = Pool2d("max", kernel, stride, padding, 0, None, *limits)
    else:
        op = average(kernel, stride, padding, size, out, limits)
    attributes: dict[str, Any] = {"pool_size": kernel, "strides": stride, "padding": padding}
    if kind == "MAX":
        body = qdq.call(relax.op.nn.max_pool2d, **attributes)
    else:
        body = qdq.call(relax.op.nn.avg_pool2d, **attributes, count_include_pad=False)
    graph = Graph(((s, z),), (s, z), body, fused, images=True)
    return trial(x, model, op, shape, graph)


def average_pool_2d(rng: Generator) -> Trial:
    """Average."""
    return pool_2d(rng, "AVERAGE")


def max_pool_2d(rng: Generator) -> Trial:
    """Maximum."""
    return pool_2d(rng, "MAX")


def mean(rng: Generator) -> Trial:
    """Mean over height and width, with a change of scale."""
    h, w, c = (int(v) for v in (*rng.integers(2, 12, 2), rng.integers(10, 60)))
    source, to, zin, zout = scale(rng), scale(rng), zero(rng), zero(rng)
    x = int8s(rng, 2, h, w, c)
    shape = (2, 1, 1, c)
    model = tflite_model(
        "MEAN",
        [TfliteTensor(x.shape, (source,), zin), constant([1, 2])],
        [TfliteTensor(shape, (to,), zout)],
        "ReducerOptions",
        version=2,
        keepDims=True,
    )
    mantissa, shift = rules.mean_words(source, to, h * w)
    ends = integer_scale("tflite", [mantissa], [shift], zout)
    op = Pool2d("sum", (h, w), (1, 1), (0, 0, 0, 0), zin, ends)
    body = qdq.call(relax.op.mean, axis=[2, 3], keepdims=True)
    return trial(x, model, op, shape, Graph(((source, zin),), (to, zout), body, images=True))


def reduce_max(rng: Generator) -> Trial:
    """Maximum over height and width."""
    h, w, c = (int(v) for v in (*rng.integers(2, 6, 2), rng.integers(10, 60)))
    s, z = scale(rng), zero(rng)
    x = int8s(rng, 2, h, w, c)
    model = tflite_model(
        "REDUCE_MAX",
        [TfliteTensor(x.shape, (s,), z), constant([1, 2])],
        [TfliteTensor((2, 1, 1, c), (s,), z)],
        "ReducerOptions",
        version=2,
        keepDims=True,
    )
    op = Pool2d("max", (h, w), (1, 1), (0, 0, 0, 0), 0, None)
    body = qdq.call(relax.op.max, axis=[2, 3], keepdims=True)
    return trial(x, model, op, (2, 1, 1, c), Graph(((s, z),), (s, z), body, images=True))


DENSE: dict[str, Maker] = {
    "conv_2d": conv_2d,
    "depthwise_conv_2d": depthwise_conv_2d,
    "fully_connected": fully_connected,
    "transpose_conv": transpose_conv,
    "batch_matmul": batch_matmul,
    "average_pool_2d": average_pool_2d,
    "max_pool_2d": max_pool_2d,
    "mean": mean,
    "reduce_max": reduce_max,
}
