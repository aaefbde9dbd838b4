"""Softmax over the channels, as TFLite's int8 kernel computes it, in every rounding.

TFLite's has steps of 1/256 from the lowest value on. Another output takes its result through a
table, as a requantize behind it would. A mask that is added before it hides elements whose level is
below the highest one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Softmax
from accelsim.legalize.exponential import exponentials
from accelsim.legalize.expressions import Arguments, output, output_shape
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Quantization, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.pairs import element_of
from accelsim.legalize.rescale import FULL, table_of
from accelsim.spec.normalization import LARGEST_ROW

OWN = Quantization(np.float32(1 / 256), -128, "int8", FULL)  # of TFLite's result
MOST_STEPS = 2.0  # by which another output may miss the real one
HIDES = 2.0**64  # a step of a mask: float32 sums of scores and such steps keep no score
NEGLIGIBLE = 1 / 64  # of 1/256, which elements 255 levels below the largest may have


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A softmax of a quantized activation over the axis that is in the lanes."""
    masked = _masked(frame, node.args[0])
    if isinstance(masked, Rejection):
        return masked
    expr, mask = masked if masked is not None else (node.args[0], None)
    source, beta = _scaled(frame, expr)
    leaf = leaf_of(frame, source)
    if leaf is None:
        return None
    axis = int(node.value.attrs.axis) % len(node.shape)
    if leaf.layout[axis : axis + 1] != "c":
        return Rejection(f"its axis {axis} is not the one of its channels")
    if leaf.shape[axis] > LARGEST_ROW:
        return Rejection(f"its rows have {leaf.shape[axis]} elements, the NPU takes {LARGEST_ROW}")
    if frame.int8_limits != FULL:
        return Rejection("its output is clipped")
    levels = None
    if not OWN.same_levels(frame.quantization):
        target = frame.quantization
        scale = float(target.scale)
        bound = distance(leaf.shape[axis], scale, masked=mask is not None)
        if frame.rounding == "tflite":
            return Rejection(f"its output has scale {scale:g} and not TFLite's 1/256 from -128 on")
        if bound > MOST_STEPS:
            return Rejection(
                f"its output has scale {scale:g}, in which its integers may miss the real result "
                f"by {bound:.1f} steps"
            )
        levels = table_of(OWN, target, frame.rounding, FULL)
    table = exponentials(beta * float(leaf.quantization.scale))
    if table is None:
        return Rejection("its input's scale is 2^-26 or less, which TFLite's kernel refuses")
    if mask is None:
        return operator_of(frame, "softmax", (leaf,), Softmax(table, levels))
    length = leaf.shape[axis]
    if 256 * length * float(table[-1]) * 2.0**-31 > NEGLIGIBLE:
        return Rejection(
            "its input has so small a scale that a mask needs more than the 256 levels there are"
        )
    if any(size not in (1, full) for size, full in zip(mask.shape, leaf.shape, strict=True)):
        return Rejection(f"its mask of shape {mask.shape} is broadcast to {leaf.shape}")
    if mask.layout != leaf.layout or mask.shape[axis] != length:
        return Rejection("its mask is not along its channels")
    table = np.append(table[:-1], np.int32(0)).astype(np.int32)
    compute = Softmax(table, levels, masked=True)
    return operator_of(frame, "masked_softmax", (leaf, mask), compute)


def distance(length: int, scale: float, *, masked: bool = False) -> float:
    """Steps from the real result at most, of an output in levels of its own.

    Half a step, and in steps of 1/256 what TFLite's result misses, which ends at 255.
    """
    hidden = NEGLIGIBLE if masked else 0.0
    return 0.5 + 2.0**-12 + (1 + length / 4096 + 1 / 1024 + hidden) / (256 * scale)


def _masked(frame: Frame, expr: Any) -> tuple[Any, Leaf] | Rejection | None:
    """What a mask is added to, and the mask; None where nothing is added."""
    node = frame.graph.producer(expr)
    if node is None or node.op != "relax.add":
        return None
    for source, other in (node.args, reversed(node.args)):
        mask = leaf_of(frame, other)
        scores = leaf_of(frame, _scaled(frame, source)[0])
        if mask is None or scores is None or len(mask.shape) != len(scores.shape):
            continue
        levels = mask.quantization
        if levels.int8_zero_point == 127 and float(levels.scale) >= HIDES:
            return source, mask
    return Rejection(
        "what is added before its softmax has no levels in the file, or not those of a mask, of "
        "which all but the highest hide an element"
    )


def _scaled(frame: Frame, expr: Any) -> tuple[Any, float]:
    """An operand and the positive number, TFLite's beta, that it is multiplied by."""
    node = frame.graph.producer(expr)
    if node is not None and node.op in ("relax.multiply", "relax.divide"):
        beta = frame.graph.constant(node.args[1])
        if beta is not None and beta.size == 1 and beta.item() > 0:
            divides = node.op == "relax.divide"
            return node.args[0], 1 / float(beta.item()) if divides else float(beta.item())
    return expr, 1.0


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Largest, exponentials, their sum, its reciprocal, the shares, and perhaps their levels."""
    table = arguments.values.table
    n, h, w, channels = output_shape(op)
    x = _kept(op, arguments) if op.compute.masked else arguments.activations[0]
    rows = (n, h, w)
    axis = te.reduce_axis((0, channels), "c")
    largest = te.compute(
        rows, lambda *row: te.max(x(*row, axis).astype("int32"), axis=axis), name="largest"
    )
    powers = te.compute(
        (*rows, channels),
        lambda *at: table(largest(*at[:3]) - x(*at).astype("int32")).astype("int64"),
        name="powers",
    )
    element = te.reduce_axis((0, channels), "e")
    total = te.compute(
        rows, lambda *row: te.sum((powers(*row, element) + (1 << 11)) >> 12, axis=element)
    )
    zeros = te.compute(rows, lambda *row: tirx.clz(total(*row)) - 32)
    scale = _reciprocals(rows, total, zeros)

    def share(*index: Any) -> Any:
        row = index[:3]
        places = (12 + 31 - 8 - zeros(*row)).astype("int64")
        scaled = _high(powers(*index), scale(*row))
        one = tirx.const(1, "int64")
        rounded = (scaled + ((one << places) >> 1)) >> places
        return (tirx.min(rounded, tirx.const(255, "int64")) - 128).astype("int8")

    if op.compute.levels is None:
        return output(op, share, "softmax")
    shares = te.compute(output_shape(op), share, name="shares")
    levels = arguments.values.levels
    return output(op, lambda *at: levels(shares(*at).astype("int32") + 128), "softmax")


def _kept(op: IntegerOp, arguments: Arguments) -> Any:
    """Scores so shifted that the largest that is kept is 127, those that are hidden at -128."""
    shape = output_shape(op)
    scores, mask = map(element_of, arguments.activations)
    axis = te.reduce_axis((0, shape[3]), "k")
    lowest = tirx.const(-128, "int32")

    def where_kept(at: Any, value: Any) -> Any:
        return tirx.if_then_else(mask(*at) == tirx.const(127, "int8"), value, lowest)

    def best(*row: Any) -> Any:
        return te.max(where_kept((*row, axis), scores(*row, axis).astype("int32")), axis=axis)

    most = te.compute(shape[:3], best, name="most")

    def shifted(*at: Any) -> Any:
        value = scores(*at).astype("int32") - most(*at[:3]) + 127
        return where_kept(at, tirx.max(value, lowest)).astype("int8")

    return te.compute(shape, shifted, name="shifted")


def _reciprocals(rows: tuple[int, ...], total: Any, zeros: Any) -> Any:
    """1 / (1 + f) in Q0.31 for the fraction f of each sum behind its leading one."""
    half = te.compute(
        rows,
        lambda *row: ((total(*row) << zeros(*row).astype("int64")) - (1 << 31) + (1 << 31)) >> 1,
        name="half",
    )
    x = te.compute(
        rows, lambda *row: 1515870810 + _high(half(*row), tirx.const(-1010580540, "int64"))
    )
    for _ in range(3):
        x = _newton(rows, half, x)
    return te.compute(rows, lambda *row: _saturated(x(*row) << 1), name="scale")


def _newton(rows: tuple[int, ...], half: Any, x: Any) -> Any:
    """x + x·(1 - half·x), Q2.29."""
    error = te.compute(rows, lambda *row: (1 << 29) - _high(half(*row), x(*row)))
    return te.compute(rows, lambda *row: x(*row) + _saturated(_high(x(*row), error(*row)) << 2))


def _high(a: Any, b: Any) -> Any:
    """a·b / 2^31, ties up."""
    return (a * b + (1 << 30)) >> 31


def _saturated(value: Any) -> Any:
    limit = 1 << 31
    return tirx.max(tirx.min(value, tirx.const(limit - 1, "int64")), tirx.const(-limit, "int64"))


OPERATOR = Operator(("softmax", "masked_softmax"), ("relax.nn.softmax",), Softmax, read, expression)
