"""Softmax over the channels, as TFLite's int8 kernel computes it, in every rounding."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx

from accelsim.artifacts import Softmax
from accelsim.legalize.exponential import exponentials
from accelsim.legalize.expressions import Arguments, output, output_shape
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.spec.normalization import LARGEST_ROW

SCALE, ZERO_POINT = 1 / 256, -128  # of the output, int8 domain


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
    target = frame.quantization
    if float(target.scale) != SCALE or target.int8_zero_point != ZERO_POINT:
        return Rejection(
            f"its output has scale {float(target.scale):g} and not 1/256 from the lowest value on"
        )
    if frame.int8_limits != (-128, 127):
        return Rejection("its output is clipped")
    table = exponentials(beta * float(leaf.quantization.scale))
    if table is None:
        return Rejection("its input's scale is 2^-26 or less, which TFLite's kernel refuses")
    return operator_of(frame, "softmax", (leaf,), Softmax(table))


def _scaled(frame: Frame, expr: Any) -> tuple[Any, float]:
    """An operand and the positive number, TFLite's beta, that it is multiplied by."""
    node = frame.graph.producer(expr)
    if node is not None and node.op == "relax.multiply":
        beta = frame.graph.constant(node.args[1])
        if beta is not None and beta.size == 1 and beta.item() > 0:
            return node.args[0], float(beta.item())
    return expr, 1.0


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Largest, exponentials, their sum, its reciprocal, and the shares."""
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

    return output(op, share, "softmax")


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
