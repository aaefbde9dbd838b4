"""Softmax over the channels, as TFLite's int8 kernel computes it, in every rounding.

TFLite's has steps of 1/256 from the lowest value on. Another output takes its result through a
table, as a requantize behind it would.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Softmax
from accelsim.legalize.exponential import exponentials
from accelsim.legalize.expressions import Arguments, output, output_shape
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Quantization, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.rescale import FULL, table_of
from accelsim.spec.normalization import LARGEST_ROW

OWN = Quantization(np.float32(1 / 256), -128, "int8", FULL)  # of TFLite's result
MOST_STEPS = 2.0  # by which another output may miss the real one


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A softmax of a quantized activation over the axis that is in the lanes."""
    source, beta = _scaled(frame, node.args[0])
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
        scale, bound = float(target.scale), distance(leaf.shape[axis], float(target.scale))
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
    return operator_of(frame, "softmax", (leaf,), Softmax(table, levels))


def distance(length: int, scale: float) -> float:
    """Steps from the real result at most, of an output in levels of its own.

    Half a step, and in steps of 1/256 what TFLite's result misses, which ends at 255.
    """
    return 0.5 + 2.0**-12 + (1 + length / 4096 + 1 / 1024) / (256 * scale)


def _scaled(frame: Frame, expr: Any) -> tuple[Any, float]:
    """An operand and the positive number, TFLite's beta, that it is multiplied by."""
    node = frame.graph.producer(expr)
    if node is not None and node.op == "relax.multiply":
        beta = frame.graph.constant(node.args[1])
        if beta is not None and beta.size == 1 and beta.item() > 0:
            return node.args[0], float(beta.item())
    return expr, 1.0


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Largest, exponentials, their sum, its reciprocal, the shares, and perhaps their levels."""
    (x,) = arguments.activations
    table = arguments.values.table
    n, h, w, channels = output_shape(op)
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


OPERATOR = Operator(("softmax",), ("relax.nn.softmax",), Softmax, read, expression)
