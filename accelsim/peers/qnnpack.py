"""PyTorch's quantized kernels of its qnnpack engine on random cases.

What comes in: nothing but a name. What goes out: `PeerCase`s, whose expected outputs the kernels
compute when a case is loaded. Activations are quint8 there and int8 here, 128 less. Multipliers are
derived in float32 throughout; sums take 22-bit integers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from tvm import relax

from accelsim.artifacts import (
    F32,
    I8,
    Add,
    Binary,
    ConvTranspose2d,
    FixedAdd,
    LayerOp,
    Lookup,
    Pool2d,
    Requantize,
    Shape4,
)
from accelsim.peers import qdq
from accelsim.peers.bilinear import pytorch_mixed, upscale
from accelsim.peers.case import Compiled, PeerCase, Trial, binary, chain, shape4
from accelsim.peers.draws import Generator, Maker, random_cases
from accelsim.peers.shapes import convolution
from accelsim.quantize import qnnpack_engine

ONE = np.float32(1)
ZERO = 128  # of an activation in int8, as quint8 has it
Array = NDArray[Any]


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """The same random cases of every operator in every run."""
    return random_cases(suite, MAKERS)


def scale(rng: Generator, value: float | None = None) -> np.float32:
    """A scale, random unless given."""
    return np.float32(np.exp(rng.uniform(-5, -1)) if value is None else value)


def zero(rng: Generator) -> int:
    """A zero point in the int8 domain; extremes occur."""
    return int(rng.choice([-128, 127, *rng.integers(-128, 128, 4)]))


def quint8(values: I8, s: np.float32, z: int) -> Any:
    """(n, h, w, c) or (rows, k) int8 as PyTorch's quantized tensor, channels second."""
    stored = (values.astype(np.int16) + ZERO).astype(np.uint8)
    moved = np.ascontiguousarray(np.moveaxis(stored, -1, 1))
    return torch._make_per_tensor_quantized_tensor(torch.from_numpy(moved), float(s), z + ZERO)


def run(kernel: Callable[[], Any]) -> I8:
    """A kernel's output on the qnnpack engine, channels last, as int8."""
    with qnnpack_engine(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized tensors are announced to end
        stored = np.moveaxis(kernel().int_repr().numpy(), 1, -1)
    return np.ascontiguousarray((stored.astype(np.int16) - ZERO).astype(np.int8))


def qint8(values: I8, scales: F32) -> Any:
    """A weight with one scale, or one an output channel."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if scales.size == 1:
        return torch._make_per_tensor_quantized_tensor(tensor, float(scales[0]), 0)
    many = torch.from_numpy(scales.astype(np.float64))
    none = torch.zeros(scales.size, dtype=torch.long)
    return torch._make_per_channel_quantized_tensor(tensor, many, none, 0)


def fp32(multiplier: Any, z: int, low: int = -128) -> Requantize:
    """Requantization with float32 multipliers."""
    return Requantize(np.atleast_1d(np.asarray(multiplier, np.float32)), z, low, 127)


@dataclass(frozen=True, slots=True)
class Graph:
    """A case as a Relax graph: scale and zero point of each input and of the output."""

    sources: tuple[tuple[np.float32, int], ...]
    target: tuple[np.float32, int]
    body: qdq.Body
    fused: int = 0

    def compiled(self, inputs: Sequence[I8], expected: I8) -> Compiled:
        """For the whole compiler; images have channels second there."""

        def turned(values: I8) -> I8:
            return np.ascontiguousarray(np.moveaxis(values, -1, 1))

        pairs = zip(self.sources, inputs, strict=True)
        sides = [qdq.Side(float(s), z, turned(values)) for (s, z), values in pairs]
        target = qdq.Side(float(self.target[0]), self.target[1])
        return qdq.compiled("qnnpack", sides, target, turned(expected), self.body, self.fused)


def trial(x: I8, kernel: Callable[[], Any], op: LayerOp, graph: Graph, flat: bool = False) -> Trial:
    """A layer of one (n, h, w, c) activation against a kernel; `flat` has no height and width."""
    expected = run(kernel)
    form = graph.compiled([x.reshape(x.shape[0], -1) if flat else x], expected)
    shape = (expected.shape[0], 1, 1, expected.shape[1]) if expected.ndim == 2 else expected.shape
    region, inputs = chain("qnnpack", x, (op, shape4(expected.reshape(shape))))
    return Trial(region, inputs, {"y0": expected.reshape(shape)}, compiled=form)


def weight(rng: Generator, *shape: int) -> tuple[I8, F32, F32]:
    """(out, in, …) weights, their scales, and a real bias."""
    values = rng.integers(-128, 128, shape).astype(np.int8)
    scales = np.exp(rng.uniform(-6, -3, shape[0] if rng.integers(2) else 1)).astype(np.float32)
    bias = rng.uniform(-3, 3, shape[0]).astype(np.float32)
    return values, scales, bias


def spread(values: I8) -> float:
    """What a sum of products is divided by to spread over int8."""
    return 74 * 74 * math.sqrt(values[0].size) / 60


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


def elementwise(rng: Generator, operator: str) -> Trial:
    """Sum or product of three scales; sums end in exact halves in some cases."""
    n, h, w, c = (int(v) for v in rng.integers(1, 9, 4))
    shape: Shape4 = (n, h, w, c + 8)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2))
    sa, za, zb, zy = scale(rng), zero(rng), zero(rng), zero(rng)
    ties = not rng.integers(3)
    sb = scale(rng, float(sa) if ties else None)
    if operator == "mul":
        sy = scale(rng, float(sa * sb) * (64 if ties else rng.uniform(50, 150)))
        op: LayerOp = Binary("multiply", za, zb, fp32(sa * sb * (ONE / sy), zy))
    else:
        sy = scale(rng, float(2 * sa) if ties else None)
        words = fixed_add(sa / sy, sb / sy)
        op = Add(za, zb, sa, sb, ONE / sy, zy, -128, 127, fixed=words)
    kernel = getattr(torch.ops.quantized, operator)
    region, inputs = binary("qnnpack", a, b, op, shape)
    expected = run(lambda: kernel(quint8(a, sa, za), quint8(b, sb, zb), float(sy), zy + ZERO))
    body = qdq.call(relax.op.add if operator == "add" else relax.op.multiply)
    form = Graph(((sa, za), (sb, zb)), (sy, zy), body).compiled([a, b], expected)
    return Trial(region, inputs, {"y": expected}, compiled=form)


def fixed_add(a: np.float32, b: np.float32) -> FixedAdd:
    """Ratios of scales as integers, the larger of 22 bits."""
    shift = 22 - math.frexp(float(max(a, b)))[1]
    first, second = (int(np.rint(ratio * np.float32(2.0**shift))) for ratio in (a, b))
    return FixedAdd(first, second, shift)


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


def table(
    rng: Generator,
    kernel: Callable[[Any, float, int], Any],
    function: Callable[[Array], Array],
    body: qdq.Body,
    output: tuple[float, int] | None = None,
) -> Trial:
    """A function of one input, all 256 values of which occur."""
    x = rng.permuted(np.arange(-128, 128)).astype(np.int8).reshape(1, 4, 4, 16)
    sx, zx = scale(rng), zero(rng)
    sy, zy = (scale(rng), zero(rng)) if output is None else (np.float32(output[0]), output[1])
    reals = ((np.arange(-128, 128) - zx).astype(np.float32) * sx).astype(np.float32)
    steps = np.rint(function(reals).astype(np.float32) * (ONE / sy)) + zy
    op = Lookup(np.clip(steps, -128, 127).astype(np.int8))
    graph = Graph(((sx, zx),), (sy, zy), body)
    return trial(x, lambda: kernel(quint8(x, sx, zx), float(sy), zy + ZERO), op, graph)


def sigmoid(v: Array) -> Array:
    """1 / (1 + exp(-v))."""
    return np.asarray(1 / (1 + np.exp(-v.astype(np.float64))))


def hard_swish(v: Array) -> Array:
    """v · relu6(v + 3) / 6 in float32."""
    return np.asarray(v * np.clip(v + np.float32(3), 0, 6) / np.float32(6))


def leaky(v: Array) -> Array:
    """v, or a tenth of it below 0, in float32."""
    return np.where(v > 0, v, v * np.float32(0.1))


def elu(v: Array) -> Array:
    """v, or exp(v) - 1 below 0."""
    return np.where(v > 0, v, np.expm1(v.astype(np.float64)))


def elu_graph(build: Any, values: list[Any]) -> Any:
    """relu(x) - relu(1 - exp(x)), as TVM's importers write it."""
    (x,) = values
    emit, one = build.emit, relax.const(1.0, "float32")
    under = emit(relax.op.nn.relu(emit(relax.op.subtract(one, emit(relax.op.exp(x))))))
    turned = emit(relax.op.multiply(relax.const(-1.0, "float32"), under))
    return emit(relax.op.add(turned, emit(relax.op.nn.relu(x))))


RESIZE_CAUSE = "PyTorch mixes pixels in float32, whose error decides ties that it does not hold"
quantized = torch.ops.quantized
MAKERS: dict[str, Maker] = {
    "conv2d": conv2d,
    "conv2d_relu": partial(conv2d, rectified=True),
    "linear": linear,
    "conv_transpose2d": conv_transpose2d,
    "add": partial(elementwise, operator="add"),
    "mul": partial(elementwise, operator="mul"),
    "avg_pool2d": partial(pool2d, kind="average"),
    "max_pool2d": partial(pool2d, kind="max"),
    "adaptive_avg_pool2d": global_average,
    "upsample_bilinear2d": upsample_bilinear,
    "sigmoid": partial(
        table,
        kernel=lambda x, s, z: torch.sigmoid(x),
        function=sigmoid,
        body=qdq.call(relax.op.sigmoid),
        output=(1 / 256, -128),
    ),
    "tanh": partial(
        table,
        kernel=lambda x, s, z: torch.tanh(x),
        function=np.tanh,
        body=qdq.call(relax.op.tanh),
        output=(1 / 128, 0),
    ),
    "hardswish": partial(
        table,
        kernel=lambda x, s, z: quantized.hardswish(x, s, z),
        function=hard_swish,
        body=qdq.hard_swish,
    ),
    "leaky_relu": partial(
        table,
        kernel=lambda x, s, z: quantized.leaky_relu(x, 0.1, False, s, z),
        function=leaky,
        body=qdq.call(relax.op.nn.leakyrelu, alpha=0.1),
    ),
    "elu": partial(
        table, kernel=lambda x, s, z: quantized.elu(x, s, z), function=elu, body=elu_graph
    ),
}
