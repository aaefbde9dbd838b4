"""ONNX Runtime's operators that take elements one by one, on random models.

What comes in: a random generator. What goes out: a `Trial` with ONNX Runtime's output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from accelsim.artifacts import I8, Add, Assemble, Binary, Layer, LayerOp, Lookup, Region, Tensor
from accelsim.peers import qdq
from accelsim.peers.bilinear import onnxruntime_mixed, upscale
from accelsim.peers.case import Trial, binary, chain, shape4
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.onnx_model import Array, Step, nhwc, stored
from accelsim.peers.ort_draw import F32, MICROSOFT, Draw, fp32, numbers, rounded
from accelsim.peers.shapes import piece

MUL_CAUSE = (
    "QLinearMul adds the zero point in float32 before it rounds half to even, the NPU after it"
)
ADD_CAUSE = (
    "QLinearAdd takes the zero points out of its products and adds them in float32 before it "
    "rounds half to even, the NPU after it"
)
RESIZE_CAUSE = (
    "Resize mixes dequantized pixels in float32, whose error decides ties that it does not hold"
)


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
    form = draw.compiled(
        "ab", y, qdq.call(relax.op.add if operator == "Add" else relax.op.multiply)
    )
    return Trial(region, inputs, {"y": stored(y)}, {"y": known}, cause, form)


def _known_add(draw: Draw, a: Array, b: Array) -> I8:
    sa, sb, sy, za, zb, zy = numbers(draw, ("sa", "sb", "sy", "za", "zb", "zy"))
    ra, rb = sa / sy, sb / sy
    fixed = zy - (ra * za + rb * zb)
    return rounded(draw, (fixed + a.astype(F32) * ra) + b.astype(F32) * rb)


def _known_mul(draw: Draw, a: Array, b: Array) -> I8:
    sa, sb, sy, za, zb, zy = numbers(draw, ("sa", "sb", "sy", "za", "zb", "zy"))
    product = (a.astype(F32) - za) * (b.astype(F32) - zb)
    return rounded(draw, product * (sa * sb / sy) + zy)


def table(draw: Draw, function: Callable[[Array], Array], source: str = "x") -> I8:
    """table[x + 128] of a float32 function between the scales of a model."""
    sx, sy, zx, zy = numbers(draw, (f"s{source}", "sy", f"z{source}", "zy"))
    low, high = draw.limits
    reals = sx * (np.arange(low, high + 1).astype(F32) - zx)
    return rounded(draw, np.rint(function(reals.astype(F32)) / sy) + zy)


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
    function = relax.op.sigmoid
    if operator == "LeakyRelu":
        function = partial(relax.op.nn.leakyrelu, alpha=float(slope))
    form = draw.compiled("x", y, qdq.call(function))
    return Trial(region, inputs, {"y0": stored(y)}, compiled=form)


def resize(rng: Generator) -> Trial:
    """Resize between DequantizeLinear and QuantizeLinear, which no optimisation changes."""
    draw = Draw(rng)
    drawn = upscale(rng, ("half_pixel", "align_corners", "asymmetric"))
    n, h, w, c = drawn.shape
    x, power = draw.activation("x", n, c, h, w), not rng.integers(3)
    sx, zx, zy = draw.scale("x", 0.125 if power else None), *map(draw.zero, "xy")
    sy = draw.scale("y", float(sx) if rng.integers(2) else float(sx * F32(rng.uniform(0.6, 2))))
    draw.constants["sizes"] = np.array([n, c, *drawn.target], np.int64)
    modes = {"mode": "linear", "coordinate_transformation_mode": drawn.mode}
    y = draw.run(
        Step("DequantizeLinear", ["x", "sx", "zx"], "real"),
        Step("Resize", ["real", "", "", "sizes"], "resized", attributes=modes),
        Step("QuantizeLinear", ["resized", "sy", "zy"]),
    )
    op = drawn.layer(zx, fp32(sx / (sy * F32(drawn.total)), zy))
    region, inputs = chain("onnxruntime", stored(nhwc(x)), (op, drawn.output))
    before, after = numbers(draw, ("zx", "zy"))
    reals = onnxruntime_mixed((nhwc(x).astype(F32) - before) * sx, drawn)
    known = rounded(draw, np.rint(reals / sy) + after)
    form = draw.compiled("x", y, drawn.body("NCHW"))
    return Trial(region, inputs, {"y0": stored(nhwc(y))}, {"y0": known}, RESIZE_CAUSE, form)


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
    y = draw.run(step)
    expected = stored(nhwc(y))
    inputs = {name: stored(nhwc(values)) for name, values in draw.inputs.items()}
    tensors = {name: Tensor(name, shape4(x), 0, 1.0) for name, x in inputs.items()}
    tensors["y"] = Tensor("y", shape4(expected), 0, 1.0)
    layer = Layer("y", "concat", ("y",), tuple(inputs), "y", Assemble(tuple(pieces)))
    region = Region("concat", tensors, tuple(inputs), ("y",), (layer,))

    def body(build: Any, values: list[Any]) -> Any:
        return build.emit(relax.op.concat(values, axis))

    form = draw.compiled(tuple(inputs), y, body)
    return Trial(region, inputs, {"y": expected}, compiled=form)


POINTWISE: dict[str, Maker] = {
    "QLinearAdd": partial(elementwise, operator="Add"),
    "QLinearMul": partial(elementwise, operator="Mul"),
    "QLinearSigmoid": partial(pointwise, operator="Sigmoid"),
    "QLinearLeakyRelu": partial(pointwise, operator="LeakyRelu"),
    "QLinearConcat": concat,
    "Resize": resize,
}
