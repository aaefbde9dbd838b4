"""ONNX Runtime's operators that sum products or windows, on random models.

What comes in: a random generator. What goes out: a `Trial` with ONNX Runtime's output.

Its x86 kernels add products of uint8 and int8 in pairs that saturate to 16 bits where the processor
has no instruction for them; int8 weights stay within ±63 here, so that no processor saturates.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import I8, LayerOp, MatMul, Pool2d, Requantize, Shape4
from accelsim.peers import qdq
from accelsim.peers.case import Trial, binary, chain, shape4
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.onnx_model import Array, Step, nhwc, stored, stored_zero
from accelsim.peers.ort_draw import F32, MICROSOFT, Draw, fp32, numbers, rounded
from accelsim.peers.shapes import convolution

POOL_CAUSE = (
    "QLinearAveragePool sums and divides float32 numbers and adds the zero point before it rounds "
    "half to even, the NPU scales an exact sum and adds it after"
)


def weights(draw: Draw, *shape: int) -> tuple[I8, int]:
    """A random weight of the model, with its zero point, as int8: full-range uint8, or ±63.

    ONNX Runtime has no kernel for int8 activations and uint8 weights.
    """
    if draw.dtype == np.uint8 and draw.rng.integers(2):
        values: Array = draw.rng.integers(0, 256, shape).astype(np.uint8)
        zero = draw.integer(100, 156)
    else:
        values, zero = draw.rng.integers(-63, 64, shape).astype(np.int8), 0
    draw.constants["w"] = values
    draw.constants["zw"] = np.array(zero, values.dtype)
    return stored(values), stored_zero(zero, values.dtype)


def conv(rng: Generator, integer: bool = False) -> Trial:
    """QLinearConv, or ConvInteger with its products scaled, rounded and shifted by ONNX nodes."""
    draw = Draw(rng)
    kernel = (draw.integer(1, 4), draw.integer(1, 4))
    stride = (draw.integer(1, 3), draw.integer(1, 3))
    dilation = (draw.integer(1, 2), draw.integer(1, 2))
    padding = tuple(draw.integer(0, k - 1) for k in (*kernel, *kernel))
    kind = draw.integer(0, 3)
    groups = draw.integer(2, 9) if kind < 2 else 1
    each, more = (1, 1) if kind == 0 else (draw.integer(1, 12), draw.integer(1, 12))
    channels, out = groups * each, groups * more
    x = draw.activation("x", draw.integer(1, 2), channels, draw.integer(7, 13), draw.integer(7, 13))
    weight, zw = weights(draw, out, each, *kernel)
    zx, zy = draw.zero("x"), draw.zero("y")
    attributes = {
        "strides": stride,
        "dilations": dilation,
        "pads": padding,
        "group": groups,
        "kernel_shape": kernel,
    }
    spread = 60 / (74 * 74 * np.sqrt(weight[0].size))
    bias = None
    if integer:
        multiplier: Any = F32(spread * rng.uniform(0.5, 2))
        y = _integer(draw, "ConvInteger", ["x", "w", "zx", "zw"], multiplier, attributes)
    else:
        sx = draw.scale("x")
        sw = np.exp(rng.uniform(-6, -3, out if rng.integers(2) else 1)).astype(F32)
        draw.constants["sw"] = sw if sw.size > 1 else sw.reshape(())
        if sw.size > 1:
            draw.constants["zw"] = np.full(out, draw.constants["zw"])
        sy = draw.scale("y", float(sx * sw.mean() / spread))
        bias = rng.integers(-4000, 4000, out).astype(np.int32)
        draw.constants["b"] = bias
        names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
        y = draw.run(Step("QLinearConv", names, attributes=attributes))
        multiplier = np.broadcast_to(sx * sw / sy, (out,))
    dense = np.ascontiguousarray(weight.transpose(0, 2, 3, 1))
    top, left, bottom, right = padding
    geometry = (stride, (top, left, bottom, right), dilation)
    op = convolution(dense, bias, (zx, zw), fp32(multiplier, zy), channels, geometry)
    expected = stored(nhwc(y))
    region, inputs = chain("onnxruntime", stored(nhwc(x)), (op, shape4(expected)))
    geometric = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    scales = np.atleast_1d(draw.constants["sw"]).tolist()
    source = draw.side("x")[0]
    body = qdq.convolution(dense, scales, bias, source, geometric, zero=zw)
    return Trial(region, inputs, {"y0": expected}, compiled=draw.compiled("x", y, body))


def _integer(
    draw: Draw, operator: str, names: list[str], multiplier: np.float32, attributes: Any = None
) -> Array:
    """int32 products, times a float32 number, rounded half to even and shifted by a zero point."""
    draw.constants |= {"m": np.array(multiplier, F32), "one": np.array(1, F32)}
    result = draw.run(
        Step(operator, names, "p", attributes=attributes),
        Step("Cast", ["p"], "f", attributes={"to": 1}),
        Step("Mul", ["f", "m"], "g"),
        Step("QuantizeLinear", ["g", "one", "zy"]),
    )
    draw.constants["sw"] = np.array(multiplier, F32)  # of a graph with scales
    return result


def matmul(rng: Generator, integer: bool = False) -> Trial:
    """QLinearMatMul or MatMulInteger with a constant, or with two activations and batches."""
    draw = Draw(rng)
    rows, depth, columns = draw.integer(1, 40), draw.integer(1, 60), draw.integer(1, 40)
    batches = () if rng.integers(2) else (draw.integer(1, 3), draw.integer(1, 3))
    a = draw.activation("a", *batches, rows, depth)
    za, zy = draw.zero("a"), draw.zero("y")
    weight, zb = weights(draw, *batches, depth, columns)
    if batches:
        draw.inputs["w"] = draw.constants.pop("w")
    spread = 60 / (74 * 74 * np.sqrt(depth))
    if integer:
        multiplier = F32(spread * rng.uniform(0.5, 2))
        y = _integer(draw, "MatMulInteger", ["a", "w", "za", "zw"], multiplier)
    else:
        sa, sb = draw.scale("a"), draw.scale("w")
        sy = draw.scale("y", float(sa * sb / spread))
        y = draw.run(Step("QLinearMatMul", ["a", "sa", "za", "w", "sw", "zw", "sy", "zy"]))
        multiplier = sa * sb / sy
    ends = fp32(multiplier, zy)
    if batches:
        op: LayerOp = MatMul(za, zb, False, ends)
        region, inputs = binary("onnxruntime", stored(a), weight, op, shape4(stored(y)))
        form = draw.compiled("aw", y, qdq.call(relax.op.matmul))
        return Trial(region, inputs, {"y": stored(y)}, compiled=form)
    dense = np.ascontiguousarray(weight.T).reshape(columns, 1, 1, depth)
    op = convolution(dense, None, (za, zb), ends, depth)
    shape: Shape4 = (rows, 1, 1, columns)
    region, inputs = chain("onnxruntime", stored(a).reshape(rows, 1, 1, depth), (op, shape))
    turned = np.ascontiguousarray(weight.T)
    body = qdq.linear(turned, [float(draw.constants["sw"])], None, draw.side("a")[0], zb)
    form = draw.compiled("a", y, body)
    return Trial(region, inputs, {"y0": stored(y).reshape(shape)}, compiled=form)


def average_pool(rng: Generator) -> Trial:
    """QLinearAveragePool, padding counted or not."""
    draw = Draw(rng)
    kernel = (draw.integer(1, 4), draw.integer(1, 4))
    stride = (draw.integer(1, 3), draw.integer(1, 3))
    pads = [draw.integer(0, k - 1) for k in (*kernel, *kernel)]
    counted = bool(rng.integers(2))
    x = draw.activation("x", 1, draw.integer(1, 20), draw.integer(5, 12), draw.integer(5, 12))
    sx, zx, zy = draw.scale("x"), draw.zero("x"), draw.zero("y")
    ties = not rng.integers(3)
    sy = draw.scale("y", float(sx) if ties else float(sx * rng.uniform(0.2, 1.2)))
    attributes = {
        "kernel_shape": kernel,
        "strides": stride,
        "pads": pads,
        "count_include_pad": int(counted),
    }
    names = ["x", "sx", "zx", "sy", "zy"]
    y = draw.run(Step("QLinearAveragePool", names, domain=MICROSOFT, attributes=attributes))
    full = kernel[0] * kernel[1]
    counts = () if counted else tuple((n, _mean(sx, sy, n, zy)) for n in range(1, full + 1))
    padding = (pads[0], pads[1], pads[2], pads[3])
    ends = _mean(sx, sy, full, zy)
    op = Pool2d("sum", kernel, stride, padding, zx, ends, by_count=counts)
    expected = stored(nhwc(y))
    region, inputs = chain("onnxruntime", stored(nhwc(x)), (op, shape4(expected)))
    known = _known_average(draw, x, (kernel, stride, padding, counted), y.shape)
    form = draw.compiled(
        "x",
        y,
        qdq.call(
            relax.op.nn.avg_pool2d,
            pool_size=kernel,
            strides=stride,
            padding=padding,
            count_include_pad=counted,
        ),
    )
    return Trial(region, inputs, {"y0": expected}, {"y0": known}, POOL_CAUSE, form)


def _mean(sx: np.float32, sy: np.float32, count: int, zero: int) -> Requantize:
    return fp32(sx / (sy * F32(count)), zero)


def _known_average(draw: Draw, x: Array, window: Any, shape: tuple[int, ...]) -> I8:
    """Dequantized elements summed row by row in float32."""
    kernel, stride, padding, counted = window
    sx, sy, zx, zy = numbers(draw, ("sx", "sy", "zx", "zy"))
    reals = sx * (x.astype(F32) - zx)
    result = np.zeros(shape, F32)
    for i in range(shape[2]):
        for j in range(shape[3]):
            top, left = i * stride[0] - padding[0], j * stride[1] - padding[1]
            rows = range(max(top, 0), min(top + kernel[0], x.shape[2]))
            cols = range(max(left, 0), min(left + kernel[1], x.shape[3]))
            total = np.zeros(shape[:2], F32)
            for r in rows:
                for c in cols:
                    total = total + reals[:, :, r, c]
            count = kernel[0] * kernel[1] if counted else len(rows) * len(cols)
            result[:, :, i, j] = total / F32(count)
    return rounded(draw, nhwc(result / sy + zy))


def global_average_pool(rng: Generator) -> Trial:
    """QLinearGlobalAveragePool."""
    draw = Draw(rng)
    x = draw.activation("x", 2, draw.integer(10, 40), draw.integer(1, 8), draw.integer(1, 8))
    sx, zx, zy = draw.scale("x"), draw.zero("x"), draw.zero("y")
    sy = draw.scale("y", float(sx * rng.uniform(0.05, 0.6)))
    names = ["x", "sx", "zx", "sy", "zy"]
    y = draw.run(Step("QLinearGlobalAveragePool", names, domain=MICROSOFT))
    size = (x.shape[2], x.shape[3])
    ends = _mean(sx, sy, size[0] * size[1], zy)
    op = Pool2d("sum", size, (1, 1), (0, 0, 0, 0), zx, ends)
    expected = stored(nhwc(y))
    region, inputs = chain("onnxruntime", stored(nhwc(x)), (op, shape4(expected)))
    form = draw.compiled("x", y, qdq.call(relax.op.mean, axis=[2, 3], keepdims=True))
    return Trial(region, inputs, {"y0": expected}, compiled=form)


DENSE: dict[str, Maker] = {
    "QLinearConv": conv,
    "ConvInteger": partial(conv, integer=True),
    "QLinearMatMul": matmul,
    "MatMulInteger": partial(matmul, integer=True),
    "QLinearAveragePool": average_pool,
    "QLinearGlobalAveragePool": global_average_pool,
}
