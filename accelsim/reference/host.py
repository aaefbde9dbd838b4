"""Float code of one part of the QDQ module, as the host runs it.

What comes in: `main` of a QDQ module, a float result in it and the quantized variables that it may
start from. What goes out: a module of just the operators between, for TVM's own CPU code. It must
not know layers, or what the compiler made of the same operators.

Nothing is rewritten: the operators are those that a compiled network leaves to the host, and TVM's
code of each is the same in both. Neither adds and multiplies in one rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import tvm
from tvm import ir, relax

from accelsim.reference.executable import machine_of

_Name = TypeVar("_Name")


def cut(function: Any, results: Sequence[Any], stops: Collection[Any]) -> tuple[Any, list[Any]]:
    """A module whose `main` computes `results` from the variables of `stops` that they need.

    Returns it with these variables in the order of its parameters. Others that are free, such as
    the model's own inputs, are parameters as well.
    """
    wanted = {variable for result in results for variable in _variables(result)}
    bindings = [one for block in function.body.blocks for one in block.bindings]
    kept: list[Any] = []
    for binding in reversed(bindings):
        if binding.var in wanted and binding.var not in stops:
            kept.append(binding)
            wanted.update(_variables(binding.value))
    bound = {binding.var for binding in kept}
    order = [*function.params, *(binding.var for binding in bindings)]
    free = [variable for variable in order if variable in wanted and variable not in bound]
    parameters = [relax.Var(f"x{number}", one.ty) for number, one in enumerate(free)]
    renamed = [relax.VarBinding(one, new) for one, new in zip(free, parameters, strict=True)]
    result = relax.BlockBuilder().normalize(relax.Tuple(list(results)))
    returned = relax.Var("result", result.ty)
    block = relax.DataflowBlock([*renamed, *reversed(kept), relax.VarBinding(returned, result)])
    main = relax.Function(parameters, relax.SeqExpr([block], returned), ret_ty=result.ty)
    module = tvm.IRModule({"main": main.with_attr("global_symbol", "main")})
    return relax.transform.Normalize()(module), free


def functions_of(modules: Mapping[_Name, Any]) -> dict[_Name, Any]:
    """Modules of `cut` by any name, compiled together: a function to `run` for each of them."""
    symbols = {name: f"part{place}" for place, name in enumerate(modules)}
    if not symbols:
        return {}
    parts = {
        symbol: modules[name]["main"].with_attr("global_symbol", symbol)
        for name, symbol in symbols.items()
    }
    machine = machine_of(tvm.IRModule(parts))
    return {name: machine[symbol] for name, symbol in symbols.items()}


def run(function: Any, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The float results of a compiled function."""
    arguments = [tvm.runtime.tensor(np.ascontiguousarray(value)) for value in inputs]
    return tuple(np.asarray(one.numpy()) for one in function(*arguments))


def _variables(expression: Any) -> list[Any]:
    """The variables among the operands of an expression."""
    if isinstance(expression, ir.Var):
        return [expression]
    if isinstance(expression, ir.Tuple):
        return [one for item in expression.fields for one in _variables(item)]
    if isinstance(expression, ir.TupleGetItem):
        return _variables(expression.tuple_value)
    if isinstance(expression, ir.Call):
        return [one for item in expression.args for one in _variables(item)]
    return []
