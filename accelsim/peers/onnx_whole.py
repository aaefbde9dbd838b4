"""Node tests whose values are whole numbers: sums and products that the NPU computes exactly.

What comes in: tests with whole numbers within 8 bits, of any type. What goes out: trials. A result
of more than 8 bits is seen through windows: the layer runs once for each, with another bias, and
each element is clipped in all windows but its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from accelsim.artifacts import I8, Add, Binary, Conv2d, ConvTranspose2d, LayerOp, Pool2d, Requantize
from accelsim.peers.case import OutOfScopeError, Trial
from accelsim.peers.onnx_order import reduce_axes, reduced
from accelsim.peers.onnx_test import (
    STEP,
    Array,
    NodeTest,
    fitting,
    four_axes,
    image,
    overhang,
    parallel,
    whole,
    window,
)
from accelsim.peers.shapes import convolution, identity

ONE = np.float32(1)
LARGEST_FACTOR = 64


def windows(x: I8, op: Conv2d | ConvTranspose2d, golden: Array) -> Trial:
    """The layer once for each window of 8 bits that its results need."""
    numbers = whole(golden)
    first = int(numbers.min()) // STEP
    last = max(first, (int(numbers.max()) - 1) // STEP)
    layers: list[tuple[LayerOp, str, I8]] = []
    for number in range(first, last + 1):
        shift = -STEP * number - 128
        moved = replace(op, bias=(op.bias + shift).astype(np.int32))
        wanted = np.clip(numbers + shift, -128, 127).astype(np.int8)
        layers.append((moved, "x", wanted))
    return parallel([{"x": x}], layers)


def conv(test: NodeTest) -> Trial:
    """Convolution with ungrouped weights, and the integer one with its zero points."""
    (x, zx), weight = fitting(image(test.array(0))), test.array(1)
    integer = test.operator == "ConvInteger"
    kernel = test.attributes.get("kernel_shape", weight.shape[2:])
    zeros = test.optional(3) if integer else None
    if zeros is not None:  # one, or one an output channel
        weight = whole(weight) - whole(zeros).reshape(-1, *[1] * (weight.ndim - 1))
    values, zw = fitting(image(weight))
    golden = image(test.outputs[0])
    w = window(test, kernel, x.shape[1:3])
    bias = None if integer else test.optional(2)
    if integer:
        zx += _zero(test.optional(2))
    numbers = None if bias is None else whole(bias).astype(np.int32)
    geometry = (w.stride, w.padding, w.dilation)
    op = convolution(values, numbers, (zx, zw), identity(), x.shape[3], geometry)
    return windows(x, op, golden)


def _zero(value: Array | None) -> int:
    return 0 if value is None else int(value.item())


def conv_transpose(test: NodeTest) -> Trial:
    """Transposed convolution; what lies outside the golden is cut off."""
    (x, zx), weight = fitting(image(test.array(0))), test.array(1)
    if test.attributes.get("group", 1) != 1:
        raise OutOfScopeError("a transposed convolution of the NPU has one group")
    if weight.ndim > 4:
        raise OutOfScopeError("the NPU's windows have two axes")
    weight = weight[:, :, None] if weight.ndim == 3 else weight
    values, zw = fitting(np.ascontiguousarray(weight.transpose(1, 2, 3, 0)))
    golden = image(test.outputs[0])
    kernel = weight.shape[2:]
    w = window(test, kernel[-(test.array(1).ndim - 2) :], x.shape[1:3])
    before = _cut(test, w.kernel, w.stride, w.dilation, x.shape[1:3], golden.shape[1:3])
    zeros = np.zeros(values.shape[0], np.int32)
    op = ConvTranspose2d(values, zeros, zx, zw, identity(), w.stride, before, w.dilation)
    return windows(x, op, golden)


def _cut(
    test: NodeTest,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    size: tuple[int, ...],
    out: tuple[int, ...],
) -> tuple[int, int]:
    """Outputs cut off before the first: as padded, or half of what is too many."""
    rank = test.array(1).ndim - 2
    pads = list(test.attributes.get("pads", []))
    mode = test.attributes.get("auto_pad", b"NOTSET")
    if pads or (mode == b"NOTSET" and "output_shape" not in test.attributes):
        before = [0] * (2 - rank) + (pads[:rank] if pads else [0] * rank)
        return before[0], before[1]
    extra = list(test.attributes.get("output_padding", [0] * rank))
    more = [0] * (2 - rank) + extra
    axes = zip(size, stride, kernel, dilation, out, more, strict=True)
    total = [s * (n - 1) + e + (k - 1) * d + 1 - o for n, s, k, d, o, e in axes]
    halves = [max(0, n) // 2 if mode == b"SAME_UPPER" else -(-max(0, n) // 2) for n in total]
    return halves[0], halves[1]


def pool(test: NodeTest) -> Trial:
    """Average where a small factor makes every result whole."""
    (x, zero), golden = fitting(image(test.array(0))), image(test.outputs[0])
    size, out = (x.shape[1], x.shape[2]), (golden.shape[1], golden.shape[2])
    if test.operator == "GlobalAveragePool":
        kernel, stride, padding = size, (1, 1), (0, 0, 0, 0)
    else:
        w = overhang(size, out, window(test, test.attributes["kernel_shape"], size))
        if w.dilation != (1, 1):
            raise OutOfScopeError("the NPU's pooling has no dilation")
        kernel, stride, padding = w.kernel, w.stride, w.padding
    return _scaled(test, x, golden, Pool2d("sum", kernel, stride, padding, zero, identity()))


def _scaled(test: NodeTest, x: I8, golden: Array, op: Pool2d, total: bool = False) -> Trial:
    """The mean, or the sum, times a factor."""
    factor = _factor(golden)
    wanted, zero = fitting(np.rint(golden.astype(np.float64) * factor))
    full = op.kernel[0] * op.kernel[1]

    def ends(count: int) -> Requantize:
        multiplier = np.float32(factor if total else factor / count)
        return Requantize(np.array([multiplier]), zero, -128, 127)

    padded = not test.attributes.get("count_include_pad", 0)
    counts = tuple((n, ends(n)) for n in range(1, full + 1)) if padded and not total else ()
    layer = replace(op, requantize=ends(full), by_count=counts)
    return parallel([{"x": x}], [(layer, "x", wanted)])


def _factor(golden: Array) -> int:
    """The least factor that makes all results whole, but for float32's last bits."""
    for factor in range(1, LARGEST_FACTOR + 1):
        values = golden.astype(np.float64) * factor
        if np.allclose(values, np.rint(values), rtol=0, atol=1e-4):
            return factor
    raise OutOfScopeError("its real numbers have no scale with which 8 bits hold them")


def reduce_sum(test: NodeTest) -> Trial:
    """Sum or mean over axes."""
    axes = reduce_axes(test)
    golden = test.outputs[0].reshape(1, 1, 1, -1)
    x, zero = fitting(reduced(test.array(0), axes))
    op = Pool2d("sum", (x.shape[1], 1), (1, 1), (0, 0, 0, 0), zero, identity())
    return _scaled(test, x, golden, op, total=test.operator == "ReduceSum")


def elementwise(test: NodeTest) -> Trial:
    """Sum, difference or product of whole numbers."""
    shape = np.broadcast_shapes(test.array(0).shape, test.array(1).shape)
    (a, za), (b, zb) = fitting(np.broadcast_to(test.array(0), shape)), fitting(test.array(1))
    golden, zero = fitting(test.outputs[0])
    exact = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[test.operator]
    if not np.array_equal(exact(whole(test.array(0)), whole(test.array(1))), golden - zero):
        raise OutOfScopeError("its results wrap, the NPU's saturate")
    if test.operator == "Mul":
        ends = Requantize(np.ones(1, np.float32), zero, -128, 127)
        op: LayerOp = Binary("multiply", za, zb, ends)
    else:
        subtract = test.operator == "Sub"
        op = Add(za, zb, ONE, ONE, ONE, zero, -128, 127, subtract=subtract)
    a4, b4 = a.reshape(four_axes(a.shape)), b.reshape(four_axes(b.shape))
    wanted = golden.reshape(four_axes(golden.shape))
    return parallel([{"x0": a4, "x1": b4}], [(op, "x", wanted)])


def matmul(test: NodeTest) -> Trial:
    """Products of matrices of whole numbers, the second a constant."""
    a, b = test.array(0), test.array(1)
    if a.ndim != 2 or b.ndim != 2:
        raise OutOfScopeError("its real numbers have no scale with which 8 bits hold them")
    (x, za), (w, zb) = fitting(a), fitting(b)
    if test.operator == "MatMulInteger":
        za, zb = za + _zero(test.optional(2)), zb + _zero(test.optional(3))
    depth, columns = b.shape
    dense = np.ascontiguousarray(w.T).reshape(columns, 1, 1, depth)
    op = convolution(dense, None, (za, zb), identity(), depth)
    rows = a.shape[0]
    golden = test.outputs[0].reshape(rows, 1, 1, columns)
    return windows(x.reshape(rows, 1, 1, depth), op, golden)


WHOLE: dict[str, Callable[[NodeTest], Trial]] = {
    "Conv": conv,
    "ConvInteger": conv,
    "ConvTranspose": conv_transpose,
    "AveragePool": pool,
    "GlobalAveragePool": pool,
    "ReduceSum": reduce_sum,
    "ReduceMean": reduce_sum,
    "Add": elementwise,
    "Sub": elementwise,
    "Mul": elementwise,
    "MatMul": matmul,
    "MatMulInteger": matmul,
}
