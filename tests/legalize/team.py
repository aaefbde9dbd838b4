"""Operators that a team of its own might add: used by tests of registration.

`CONCAT` puts any number of equally quantized tensors side by side along channels. `SHIFTED` is an
addition of a quantized constant to an activation, under a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir, relax, tirx

from accelsim.legalize import Operator, register
from accelsim.legalize import operators as registry
from accelsim.legalize.expressions import Arguments, output
from accelsim.legalize.frame import Frame, constant_leaf_of, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Inputs in order along channels; `starts` has the first channel of each."""

    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    """clamp(x + constant): scales of input, constant and output are equal."""

    constant: np.ndarray  # (c,) int8, centred
    clamp_min: int
    clamp_max: int


def read_concat(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A concat of equally quantized activations."""
    fields = frame.graph.producer(node.args[0])
    operands = node.args[0].fields if fields is None else fields.args
    leaves = [leaf_of(frame, operand) for operand in operands]
    known = [leaf for leaf in leaves if leaf is not None]
    if len(known) != len(leaves):
        return None
    if not all(leaf.quantization.same_levels(frame.quantization) for leaf in known):
        return Rejection("its inputs have different scales")
    widths = [leaf.shape[1] for leaf in known]
    starts = tuple(int(start) for start in np.cumsum([0, *widths[:-1]]))
    return operator_of(frame, "side_by_side", known, SideBySide(starts))


def express_concat(op: IntegerOp, arguments: Arguments) -> Any:
    """Each channel from the input that has it."""

    def element(n: Any, h: Any, w: Any, c: Any) -> Any:
        value = arguments.activations[0](n, h, w, c)
        pairs = zip(op.compute.starts, arguments.activations, strict=True)
        for start, x in list(pairs)[1:]:
            value = tirx.if_then_else(c >= start, x(n, h, w, c - start), value)
        return value

    return output(op, element)


def read_raised(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """An addition of a quantized constant."""
    leaf = leaf_of(frame, node.args[0])
    constant = constant_leaf_of(frame, node.args[1])
    if leaf is None or constant is None:
        return None
    values = constant.values.reshape(-1).astype(np.int16) - constant.quantization.int8_zero_point
    compute = Raised(values.astype(np.int8), *frame.int8_limits)
    return operator_of(frame, "raised", (leaf,), compute)


def express_raised(op: IntegerOp, arguments: Arguments) -> Any:
    """The sum in int32, clamped."""
    (x,) = arguments.activations
    raised = arguments.values

    def element(*index: Any) -> Any:
        total = x(*index).astype("int32") + raised.constant(index[3]).astype("int32")
        bounded = tirx.max(tirx.min(total, raised.clamp_max), raised.clamp_min)
        return bounded.astype("int8")

    return output(op, element)


CONCAT = Operator(("side_by_side",), ("relax.concat",), SideBySide, read_concat, express_concat)
RAISED = Operator(("raised",), ("relax.add",), Raised, read_raised, express_raised)


@contextmanager
def registered(*operators: Operator) -> Iterator[None]:
    """The operators are known inside the block only."""
    before = list(registry._registered)
    try:
        for operator in operators:
            register(operator)
        yield
    finally:
        registry._registered[:] = before


def network(
    inputs: int, constant: np.ndarray | None = None, shape: tuple[int, ...] = (1, 3, 2, 2)
) -> Any:
    """int8 inputs of `shape` at scale 0.5, zero point 4: concatenated, then + constant (c,)."""
    builder = relax.BlockBuilder()
    parameters = [
        relax.Var(f"x{index}", relax.TensorType(shape, "float32")) for index in range(inputs)
    ]
    level = relax.const(np.float32(0.5)), relax.const(4, "int32")
    with builder.function("main", parameters):
        with builder.dataflow():
            reals = []
            for parameter in parameters:
                q = builder.emit(relax.op.quantize(parameter, *level, 1, "int8"))
                reals.append(builder.emit(relax.op.dequantize(q, *level, 1)))
            y = reals[0]
            if inputs > 1:
                y = _island(builder, relax.op.concat(reals, 1), level, "joined")
            if constant is not None:
                shaped = relax.const(constant.reshape(1, -1, 1, 1))
                addend = builder.emit(relax.op.dequantize(shaped, *level, 1))
                y = _island(builder, relax.op.add(y, addend), level, "raised")
            result = builder.emit_output(y)
        builder.emit_func_output(result)
    return builder.get()


def _island(builder: Any, value: Any, level: tuple[Any, Any], name: str) -> Any:
    """A float operator, quantized and dequantized, as a layer of the given name."""
    q = relax.op.quantize(builder.emit(_named(value, name)), *level, 1, "int8")
    return builder.emit(relax.op.dequantize(builder.emit(_named(q, name)), *level, 1))


def _named(call: Any, name: str) -> Any:
    span = ir.Span(ir.SourceName(name), 0, 0, 0, 0)
    return ir.Call(call.op, call.args, call.attrs, call.ty_args, span)
