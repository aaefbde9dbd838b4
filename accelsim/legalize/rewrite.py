"""The legalized module: integer operators as named PrimFuncs, the rest as it was.

What comes in: a graph and its islands. What goes out: a module that computes the same on a CPU,
with uint8 shifted to int8 where the host meets the NPU. It must not know what is partitioned later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir, relax

from accelsim.legalize import boundary
from accelsim.legalize.form import PREFIX, arguments_of, constants_of, operator_of_name
from accelsim.legalize.frame import quantization_of
from accelsim.legalize.graph import Graph, Node
from accelsim.legalize.integer_op import IntegerOp
from accelsim.legalize.islands import Islands


class _Writer:
    """State of one rewrite: which variables are wanted, and what stands for them."""

    def __init__(self, graph: Graph, operators: dict[Any, IntegerOp], divides: bool) -> None:
        self.graph = graph
        self.divides = divides  # at the quantize of floats, see `boundary.quantized`
        self.operators = operators
        self.host_wanted: set[Any] = set()  # variables wanted in the graph's own dtype
        self.int8_wanted: set[Any] = set()  # quantized variables wanted as int8
        self.host: dict[Any, Any] = {}
        self.int8: dict[Any, Any] = {}
        self.builder = relax.BlockBuilder()

    def mark(self) -> None:
        """Find what the result needs, from the last node to the first."""
        self.host_wanted.add(self.graph.result)
        for node in reversed(self.graph.nodes):
            if node.var not in self.host_wanted and node.var not in self.int8_wanted:
                continue
            op = self.operators.get(node.var)
            if op is not None:
                self.int8_wanted.update(op.inputs)
            else:
                self.host_wanted.update(_variables(node.args))

    def write(self) -> list[Node]:
        """Emit the wanted nodes in order; return those that stay on the host."""
        remaining = []
        for parameter in self.graph.parameters:
            self.host[parameter] = parameter
            self._provide(parameter, str(parameter.name), str(parameter.ty.dtype))
        for node in self.graph.nodes:
            if node.var not in self.host_wanted and node.var not in self.int8_wanted:
                continue
            op = self.operators.get(node.var)
            if op is not None:
                self.int8[node.var] = self._emit_operator(op)
                self._provide_host(node)
            else:
                self.host[node.var] = self._emit_host(node)
                self._provide(node.var, node.name, node.dtype)
                remaining.append(node)
        return remaining

    def _emit_operator(self, op: IntegerOp) -> Any:
        arguments = [self.int8[var] for var in op.inputs]
        constants = [relax.const(value) for value in constants_of(op)]
        expression = operator_of_name(op.op).expression
        call = self.builder.call_te(
            lambda *placeholders: expression(op, arguments_of(op, placeholders)),
            *arguments,
            *constants,
            primfunc_name_hint=PREFIX + op.op,
            # Equal functions are taken for one: without it one of two names of a table would go.
            primfunc_attrs={"accelsim.operator": op.op},
        )
        return self.builder.emit(_named(call, op.name))

    def _emit_host(self, node: Node) -> Any:
        value = _substituted(node.value, self.host)
        if node.op == "relax.quantize" and str(node.args[0].ty.dtype) == "float32":
            quantization = quantization_of(self.graph, node, node)
            if quantization is not None:
                scale = quantization.scale
                factor = scale if self.divides else np.float32(1.0) / scale
                call = self.builder.call_te(
                    boundary.quantized,
                    value.args[0],
                    relax.const(factor, "float32"),
                    self.divides,
                    quantization.zero_point,
                    quantization.dtype,
                    primfunc_name_hint=f"quantize_to_{quantization.dtype}",
                )
                value = _named(call, node.name)
        return self.builder.emit(value)

    def _provide(self, var: Any, name: str, dtype: str) -> None:
        """The int8 form of a host variable, where an operator reads it."""
        if var not in self.int8_wanted:
            return
        self.int8[var] = (
            self._shift(self.host[var], name, boundary.shift_to_int8)
            if dtype == "uint8"
            else self.host[var]
        )

    def _provide_host(self, node: Node) -> None:
        """The graph's own form of an operator's result, where the host reads it."""
        if node.var in self.host_wanted:
            self.host[node.var] = (
                self._shift(self.int8[node.var], node.name, boundary.shift_to_uint8)
                if node.dtype == "uint8"
                else self.int8[node.var]
            )

    def _shift(self, value: Any, name: str, shift: Callable[[Any], Any]) -> Any:
        call = self.builder.call_te(shift, value, primfunc_name_hint=shift.__name__)
        return self.builder.emit(_named(call, name))


def write_module(
    module: Any, graph: Graph, islands: Islands, rounding: str
) -> tuple[Any, list[Node]]:
    """The legalized module (attributes kept), and the nodes that stay on the host in order."""
    writer = _Writer(graph, islands.operators, divides=rounding == "onnxruntime")
    writer.mark()
    with writer.builder.function("main", list(graph.parameters)):
        with writer.builder.dataflow():
            remaining = writer.write()
            result = writer.builder.emit_output(writer.host[graph.result])
        writer.builder.emit_func_output(result)
    written = writer.builder.finalize()
    if module.attrs:
        written = written.with_attrs(module.attrs)
    return written, remaining


def _variables(args: Any) -> list[Any]:
    """The variables among operands, tuples looked into."""
    found: list[Any] = []
    for argument in args:
        if isinstance(argument, ir.Var):
            found.append(argument)
        elif isinstance(argument, ir.Tuple):
            found.extend(_variables(argument.fields))
    return found


def _substituted(value: Any, names: dict[Any, Any]) -> Any:
    if isinstance(value, ir.Var):
        return names.get(value, value)
    if isinstance(value, ir.Tuple):
        return relax.Tuple([_substituted(field, names) for field in value.fields])
    if isinstance(value, ir.TupleGetItem):
        return relax.TupleGetItem(_substituted(value.tuple_value, names), value.index)
    if isinstance(value, ir.Call):
        args = [_substituted(argument, names) for argument in value.args]
        return ir.Call(value.op, args, value.attrs, value.ty_args, value.span)
    return value


def _named(call: Any, name: str) -> Any:
    span = ir.Span(ir.SourceName(name), 0, 0, 0, 0)
    return ir.Call(call.op, call.args, call.attrs, call.ty_args, span)
