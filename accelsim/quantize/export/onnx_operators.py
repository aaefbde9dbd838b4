"""How each Relax operator of a QDQ module is written in ONNX.

What comes in: a call, and the graph that is being written. What goes out: names of its results, or
None for a form that ONNX does not have. It must not know files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax
from tvm.ir.expr import GenericConst

from accelsim.quantize.export.onnx_graph import OnnxGraph

Result = list[str] | None
Emit = Callable[["Writer", Any, Any, str], Result]


class Writer:
    """The graph, what each variable is called in it, and who reads whom."""

    def __init__(
        self, graph: OnnxGraph, bindings: dict[Any, Any], result: Any, rounding: str
    ) -> None:
        self.graph, self.bindings, self.rounding = graph, bindings, rounding
        self.values: dict[Any, list[str]] = {}
        self.users: dict[Any, list[Any]] = {}
        for variable, value in bindings.items():
            for argument in _operands(value):
                self.users.setdefault(argument, []).append(variable)
        self.users.setdefault(result, []).append(None)

    def names(self, expr: Any, hint: str = "constant") -> list[str]:
        """What an expression is called in the graph; a constant becomes an initializer."""
        if isinstance(expr, GenericConst):
            return [self.graph.constant(np.asarray(expr.value.numpy()), hint)]
        if isinstance(expr, relax.Tuple):
            return [name for field in expr.fields for name in self.names(field, hint)]
        return self.values[expr]

    def name(self, expr: Any, hint: str = "constant") -> str:
        """Of an expression with one result."""
        return self.names(expr, hint)[0]

    def producer(self, expr: Any) -> Any:
        """The call whose result an expression is, or None."""
        value = self.bindings.get(expr)
        return value if isinstance(value, relax.Call) else None

    def reader(self, variable: Any) -> Any:
        """The only variable that is computed from this one, or None."""
        users = self.users.get(variable, [])
        return users[0] if len(users) == 1 else None


def constant_of(expr: Any) -> NDArray[Any] | None:
    """The value of a constant expression."""
    return np.asarray(expr.value.numpy()) if isinstance(expr, GenericConst) else None


def numbers(values: Any) -> list[int]:
    """Integers of a shape, an attribute or a tuple."""
    found = values.values if isinstance(values, relax.ShapeExpr) else values
    return [int(one) for one in found]


def is_call(value: Any, operator: str) -> bool:
    """Whether a value is a call of that operator."""
    return isinstance(value, relax.Call) and getattr(value.op, "name", "") == operator


def shape_of(expr: Any) -> list[int]:
    """Extents of an expression's tensor."""
    value = constant_of(expr)
    return list(value.shape) if value is not None else numbers(expr.ty.shape)


def _operands(value: Any) -> list[Any]:
    if isinstance(value, ir.Var):
        return [value]
    fields: list[Any] = []
    if isinstance(value, relax.Call):
        fields = list(value.args)
    elif isinstance(value, relax.Tuple):
        fields = list(value.fields)
    elif isinstance(value, relax.TupleGetItem):
        fields = [value.tuple_value]
    return [one for field in fields for one in _operands(field)]


def _table() -> dict[str, Emit]:
    from accelsim.quantize.export import onnx_elementwise, onnx_moves, onnx_sums

    return {**onnx_sums.TABLE, **onnx_elementwise.TABLE, **onnx_moves.TABLE}


class _Operators:
    """The table of all operators, made when it is first asked."""

    def __init__(self) -> None:
        self._table: dict[str, Emit] = {}

    def get(self, operator: str) -> Emit | None:
        """How an operator is written, or None."""
        self._table = self._table or _table()
        return self._table.get(operator)


OPERATORS = _Operators()
