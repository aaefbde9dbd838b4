"""ONNX Runtime's quantized operators on random models.

What comes in: seeds. What goes out: `PeerCase`s, whose expected outputs the CPU provider computes,
graph optimisation off, when a case is loaded.

Its x86 kernels add products of uint8 and int8 in pairs that saturate to 16 bits where the processor
has no instruction for them; int8 weights stay within ±63 here, so that no processor saturates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.artifacts import (
    I8,
    Add,
    Assemble,
    Binary,
    Layer,
    LayerOp,
    Lookup,
    MatMul,
    Pool2d,
    Region,
    Requantize,
    Shape4,
    Tensor,
)
from accelsim.peers.case import PeerCase, Trial, binary, chain, shape4
from accelsim.peers.draws import Generator, Maker, random_cases
from accelsim.peers.onnx_model import (
    Array,
    Step,
    nhwc,
    onnx_model,
    onnx_output,
    stored,
    stored_zero,
)
from accelsim.peers.shapes import convolution, piece

MICROSOFT = "com.microsoft"
F32 = np.float32
MUL_CAUSE = (
    "QLinearMul adds the zero point in float32 before it rounds half to even, the NPU after it"
)
ADD_CAUSE = (
    "QLinearAdd takes the zero points out of its products and adds them in float32 before it "
    "rounds half to even, the NPU after it"
)
POOL_CAUSE = (
    "QLinearAveragePool sums and divides float32 numbers and adds the zero point before it rounds "
    "half to even, the NPU scales an exact sum and adds it after"
)


def discover(suite: str, _folder: Path) -> Iterator[PeerCase]:
    """The same random cases of every operator in every run."""
    return random_cases(suite, MAKERS)


class Draw:
    """Random numbers of one case, and the model that is built from them."""

    def __init__(self, rng: Generator) -> None:
        """Choose uint8 or int8."""
        self.rng = rng
        self.dtype: Any = np.uint8 if rng.integers(2) else np.int8
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}

    def activation(self, name: str, *shape: int) -> Array:
        """A full-range input of the model."""
        low, high = self.limits
        self.inputs[name] = self.rng.integers(low, high + 1, shape).astype(self.dtype)
        return self.inputs[name]

    @property
    def limits(self) -> tuple[int, int]:
        """Range of the activations' type."""
        return int(np.iinfo(self.dtype).min), int(np.iinfo(self.dtype).max)

    def scale(self, name: str, value: float | None = None) -> np.float32:
        """A scale, random unless given."""
        drawn = np.exp(self.rng.uniform(-5, -1)) if value is None else value
        self.constants[f"s{name}"] = np.array(drawn, F32)
        return F32(drawn)

    def zero(self, name: str) -> int:
        """A zero point of the activations' type, in the int8 domain; extremes occur."""
        low, high = self.limits
        value = int(self.rng.choice([low, high, *self.rng.integers(low, high + 1, 4)]))
        self.constants[f"z{name}"] = np.array(value, self.dtype)
        return stored_zero(value, self.dtype)

    def integer(self, low: int, high: int) -> int:
        """A random length, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def run(self, *steps: Step) -> Array:
        """The model's output."""
        name = np.dtype(self.dtype).name
        return onnx_output(onnx_model(steps, self.inputs, self.constants, name), self.inputs)


def fp32(multiplier: Any, zero: int) -> Requantize:
    """Requantization as ONNX Runtime does it."""
    return Requantize(np.atleast_1d(np.asarray(multiplier, F32)), zero, -128, 127)


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
    return Trial(region, inputs, {"y0": expected})


def _integer(
    draw: Draw, operator: str, names: list[str], multiplier: np.float32, attributes: Any = None
) -> Array:
    """int32 products, times a float32 number, rounded half to even and shifted by a zero point."""
    draw.constants |= {"m": np.array(multiplier, F32), "one": np.array(1, F32)}
    return draw.run(
        Step(operator, names, "p", attributes=attributes),
        Step("Cast", ["p"], "f", attributes={"to": 1}),
        Step("Mul", ["f", "m"], "g"),
        Step("QuantizeLinear", ["g", "one", "zy"]),
    )


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
        return Trial(region, inputs, {"y": stored(y)})
    dense = np.ascontiguousarray(weight.T).reshape(columns, 1, 1, depth)
    op = convolution(dense, None, (za, zb), ends, depth)
    shape: Shape4 = (rows, 1, 1, columns)
    region, inputs = chain("onnxruntime", stored(a).reshape(rows, 1, 1, depth), (op, shape))
    return Trial(region, inputs, {"y0": stored(y).reshape(shape)})


def elementwise(rng: Generator, operator: str) -> Trial:
    """QLinearAdd or QLinearMul of three scales, with broadcasting of the second operand."""
    draw = Draw(rng)
    shape = (draw.integer(1, 3), draw.integer(1, 6), draw.integer(1, 9), draw.integer(1, 30))
    second = tuple(1 if rng.integers(4) == 0 else length for length in shape)
    a, b = draw.activation("a", *shape), draw.activation("b", *second)
    ties = not rng.integers(3)  # scales with which sums and products end in an exact half
    sa, za, zb, zy = draw.scale("a"), *map(draw.zero, "aby")
    sb = draw.scale("b", float(sa) if ties else None)
    if operator == "Add":
        sy = draw.scale("y", float(2 * sa) if ties else None)
    else:
        sy = draw.scale("y", float(sa * sb * F32(64 if ties else rng.uniform(50, 150))))
    names = ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"]
    y = draw.run(Step(f"QLinear{operator}", names, domain=MICROSOFT))
    if operator == "Add":
        op: LayerOp = Add(za, zb, sa, sb, F32(1) / sy, zy, -128, 127)
    else:
        op = Binary("multiply", za, zb, fp32(sa * sb / sy, zy))
    region, inputs = binary("onnxruntime", stored(a), stored(b), op, shape)
    known = _known_add(draw, a, b) if operator == "Add" else _known_mul(draw, a, b)
    cause = ADD_CAUSE if operator == "Add" else MUL_CAUSE
    return Trial(region, inputs, {"y": stored(y)}, {"y": known}, cause)


def _clipped(draw: Draw, values: Array) -> I8:
    """float32 → the activations' type, rounded half to even, as int8."""
    return stored(np.clip(np.rint(values), *draw.limits).astype(draw.dtype))


def _numbers(draw: Draw, *names: str) -> tuple[Any, ...]:
    return tuple(F32(draw.constants[name]) for name in names)


def _known_add(draw: Draw, a: Array, b: Array) -> I8:
    sa, sb, sy, za, zb, zy = _numbers(draw, "sa", "sb", "sy", "za", "zb", "zy")
    ra, rb = sa / sy, sb / sy
    fixed = zy - (ra * za + rb * zb)
    return _clipped(draw, (fixed + a.astype(F32) * ra) + b.astype(F32) * rb)


def _known_mul(draw: Draw, a: Array, b: Array) -> I8:
    sa, sb, sy, za, zb, zy = _numbers(draw, "sa", "sb", "sy", "za", "zb", "zy")
    product = (a.astype(F32) - za) * (b.astype(F32) - zb)
    return _clipped(draw, product * (sa * sb / sy) + zy)


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
    return Trial(region, inputs, {"y0": expected}, {"y0": known}, POOL_CAUSE)


def _mean(sx: np.float32, sy: np.float32, count: int, zero: int) -> Requantize:
    return fp32(sx / (sy * F32(count)), zero)


def _known_average(draw: Draw, x: Array, window: Any, shape: tuple[int, ...]) -> I8:
    """Dequantized elements summed row by row in float32."""
    kernel, stride, padding, counted = window
    sx, sy, zx, zy = _numbers(draw, "sx", "sy", "zx", "zy")
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
    return _clipped(draw, nhwc(result / sy + zy))


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
    return Trial(region, inputs, {"y0": expected})


def table(draw: Draw, function: Callable[[Array], Array], source: str = "x") -> I8:
    """table[x + 128] of a float32 function between the scales of a model."""
    sx, sy, zx, zy = _numbers(draw, f"s{source}", "sy", f"z{source}", "zy")
    low, high = draw.limits
    reals = sx * (np.arange(low, high + 1).astype(F32) - zx)
    return _clipped(draw, np.rint(function(reals.astype(F32)) / sy) + zy)


def pointwise(rng: Generator, operator: str) -> Trial:
    """QLinearSigmoid or QLinearLeakyRelu, all 256 values of which occur."""
    draw = Draw(rng)
    low, high = draw.limits
    x = rng.permuted(np.arange(low, high + 1)).astype(draw.dtype).reshape(1, 4, 4, 16)
    draw.inputs["x"] = x
    draw.scale("x")
    draw.zero("x")
    draw.zero("y")
    draw.scale("y", 1 / 256 if operator == "Sigmoid" else None)
    slope = F32(rng.uniform(0.01, 0.5))
    attributes = {} if operator == "Sigmoid" else {"alpha": float(slope)}
    names = ["x", "sx", "zx", "sy", "zy"]
    y = draw.run(Step(f"QLinear{operator}", names, domain=MICROSOFT, attributes=attributes))

    def sigmoid(v: Array) -> Array:
        return (1 / (1 + np.exp(-v.astype(np.float64)))).astype(F32)

    def leaky(v: Array) -> Array:
        return np.where(v >= 0, v, slope * v)

    op = Lookup(table(draw, sigmoid if operator == "Sigmoid" else leaky))
    region, inputs = chain("onnxruntime", stored(x), (op, shape4(stored(x))))
    return Trial(region, inputs, {"y0": stored(y)})


def concat(rng: Generator) -> Trial:
    """QLinearConcat: each input changes scale by a table, and all are put side by side."""
    draw = Draw(rng)
    axis, count = draw.integer(0, 3), draw.integer(2, 4)
    shape = [draw.integer(1, 2), draw.integer(2, 12), draw.integer(2, 6), draw.integer(2, 6)]
    names, pieces = ["sy", "zy"], []
    draw.scale("y")
    draw.zero("y")
    offset, place_axis = 0, (0, 3, 1, 2)[axis]
    for number in range(count):
        shape[axis] = draw.integer(1, 9)
        name = f"x{number}"
        length = shape4(nhwc(draw.activation(name, *shape)))
        draw.scale(name)
        draw.zero(name)
        names += [name, f"s{name}", f"z{name}"]
        before = [0, 0, 0, 0]
        before[place_axis] = offset
        offset += shape[axis]
        a, b, c, d = before
        placed = piece(number, length, (a, b, c, d))
        pieces.append(replace(placed, table=table(draw, lambda v: v, name)))
    step = Step("QLinearConcat", names, domain=MICROSOFT, attributes={"axis": axis})
    expected = stored(nhwc(draw.run(step)))
    inputs = {name: stored(nhwc(values)) for name, values in draw.inputs.items()}
    tensors = {name: Tensor(name, shape4(x), 0, 1.0) for name, x in inputs.items()}
    tensors["y"] = Tensor("y", shape4(expected), 0, 1.0)
    layer = Layer("y", "concat", ("y",), tuple(inputs), "y", Assemble(tuple(pieces)))
    region = Region("concat", tensors, tuple(inputs), ("y",), (layer,))
    return Trial(region, inputs, {"y": expected})


MAKERS: dict[str, Maker] = {
    "QLinearConv": conv,
    "ConvInteger": partial(conv, integer=True),
    "QLinearMatMul": matmul,
    "MatMulInteger": partial(matmul, integer=True),
    "QLinearAdd": partial(elementwise, operator="Add"),
    "QLinearMul": partial(elementwise, operator="Mul"),
    "QLinearAveragePool": average_pool,
    "QLinearGlobalAveragePool": global_average_pool,
    "QLinearSigmoid": partial(pointwise, operator="Sigmoid"),
    "QLinearLeakyRelu": partial(pointwise, operator="LeakyRelu"),
    "QLinearConcat": concat,
}
