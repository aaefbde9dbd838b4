"""A QDQ Relax function as plain records: operators, operands, shapes and the user's names.

What comes in: `main` of a QDQ module. What goes out: a `Graph` of `Node`s in execution order, with
constants as NumPy arrays. It must not know which operators the NPU has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir, relax, tirx
from tvm.ir.expr import GenericConst

from accelsim.artifacts import F32
from accelsim.errors import ModelError


@dataclass(frozen=True, slots=True)
class Node:
    """One binding. `shape` and `dtype` are of its (only) result; a tuple has neither."""

    index: int
    var: Any
    value: Any
    op: str  # "relax.nn.conv2d", "tuple", "tuple_element", "constant" or "alias"
    name: str  # the user's layer name
    shape: tuple[int, ...]
    dtype: str

    @property
    def args(self) -> Sequence[Any]:
        """The operands of a call, the fields of a tuple, the source of an alias."""
        if self.op == "tuple":
            return tuple(self.value.fields)
        if self.op == "tuple_element":
            return (self.value.tuple_value,)
        if self.op in ("alias", "constant"):
            return (self.value,)
        return tuple(self.value.args)


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of `main` in execution order, who uses whose result, and what is returned."""

    function: Any  # the Relax function
    parameters: tuple[Any, ...]
    nodes: tuple[Node, ...]
    by_var: dict[Any, Node]
    users: dict[Any, tuple[Node, ...]]
    result: Any  # the variable that main returns

    def producer(self, expr: Any) -> Node | None:
        """The node whose result `expr` is, through aliases; None for parameters and constants."""
        node = self.by_var.get(expr) if isinstance(expr, ir.Var) else None
        while node is not None and node.op == "alias":
            node = self.by_var.get(node.value)
        return node

    def constant(self, expr: Any) -> np.ndarray | None:
        """The value of a constant operand, or None."""
        node = self.producer(expr)
        if node is not None and node.op == "constant":
            expr = node.value
        return np.asarray(expr.value.numpy()) if isinstance(expr, GenericConst) else None

    def real_constant(self, expr: Any) -> F32 | None:
        """A float32 constant operand, or the integers that are dequantized to one."""
        value = self.constant(expr)
        if value is not None:
            return value if value.dtype == np.float32 else None
        node = self.producer(expr)
        if node is None or node.op != "relax.dequantize":
            return None
        stored, scale, zero = (self.constant(one) for one in node.args[:3])
        if stored is None or scale is None or zero is None or scale.size != 1:
            return None
        centred = stored.astype(np.int64) - int(zero.reshape(()))
        return np.asarray(centred.astype(np.float32) * np.float32(scale.reshape(())), np.float32)

    def sole_user(self, var: Any) -> Node | None:
        """The one node that reads `var`, if there is exactly one and it is not returned."""
        users = self.users.get(var, ())
        return users[0] if len(users) == 1 and not var.same_as(self.result) else None


def read_graph(function: Any) -> Graph:
    """Read a Relax function of one block. Raises ModelError on dynamic shapes and control flow."""
    body = function.body
    if not isinstance(body, relax.SeqExpr) or len(body.blocks) != 1:
        raise ModelError(
            "The model has control flow or side effects; export it as one straight graph."
        )
    for parameter in function.params:
        static_shape(parameter, str(parameter.name))
    nodes: list[Node] = []
    for index, binding in enumerate(body.blocks[0].bindings):
        if not isinstance(binding, relax.VarBinding):
            raise ModelError("The model has a dynamic shape; export it with fixed shapes.")
        nodes.append(_node(index, binding.var, binding.value))
    by_var = {node.var: node for node in nodes}
    users: dict[Any, list[Node]] = {}
    for node in nodes:
        for argument in node.args:
            if isinstance(argument, ir.Var):
                users.setdefault(argument, []).append(node)
    return Graph(
        function=function,
        parameters=tuple(function.params),
        nodes=tuple(nodes),
        by_var=by_var,
        users={var: tuple(found) for var, found in users.items()},
        result=body.body,
    )


def static_shape(expr: Any, name: str) -> tuple[int, ...]:
    """The shape of a tensor expression. Raises ModelError, naming the layer, if it is dynamic."""
    shape = getattr(expr.ty, "shape", None)
    if shape is None:
        return ()
    extents = []
    for extent in shape:
        if not isinstance(extent, int | tirx.IntImm):
            raise ModelError(
                f"Layer {name!r} has the dynamic shape {shape}; export the model with fixed shapes."
            )
        extents.append(int(extent))
    return tuple(extents)


def _node(index: int, var: Any, value: Any) -> Node:
    if isinstance(value, ir.Call):
        op = str(getattr(value.op, "name", value.op))
    elif isinstance(value, ir.Tuple):
        op = "tuple"
    elif isinstance(value, ir.TupleGetItem):
        op = "tuple_element"
    elif isinstance(value, GenericConst):
        op = "constant"
    elif isinstance(value, ir.Var):
        op = "alias"
    else:
        raise ModelError(f"The model has control flow ({type(value).__name__}) at {var.name!r}.")
    name = _span_name(value) or str(var.name)
    dtype = str(var.ty.dtype) if isinstance(var.ty, relax.TensorType) else ""
    return Node(index, var, value, op, name, static_shape(var, name), dtype)


def _span_name(value: Any) -> str | None:
    source = getattr(getattr(value, "span", None), "source_name", None)
    return str(source.name) if source is not None else None
