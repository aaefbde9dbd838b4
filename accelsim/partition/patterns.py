"""Which calls of a legalized module form regions.

What comes in: a legalized module. What goes out: the module after matching and after merging. It
must not know what the operators compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir, relax
from tvm.ir.expr import GenericConst
from tvm.relax.dpl import is_const, is_gv, is_op, is_tuple, wildcard
from tvm.relax.transform import FusionPattern, PatternCheckContext

from accelsim.errors import ModelError
from accelsim.legalize import Legalized
from accelsim.legalize.form import activation_count, operator_name
from accelsim.partition.symbols import CODEGEN, with_short_symbols


@dataclass(frozen=True, slots=True)
class Stages:
    """The module after each step, for `--dump-ir`; `merged` is the result."""

    matched: Any
    merged: Any


def partition(legalized: Legalized) -> Stages:
    """Group the integer operators of `legalized` into as few regions as its data flow allows."""
    matched = relax.transform.FuseOpsByPattern(
        [_pattern(*form) for form in _forms(legalized.module["main"])], bind_constants=True
    )(legalized.module)
    reject_wrong_boundaries(matched)
    merged = relax.transform.MergeCompositeFunctions()(matched)
    return Stages(matched, with_short_symbols(merged))


def _forms(function: Any) -> list[tuple[str, int, int]]:
    """The (operator, activations, constants) of the integer operators that occur, sorted."""
    found = set()
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            op = _operator_of_call(value)
            if op is not None:
                operands = value.args[1].fields
                constants = [one for one in operands if isinstance(one, GenericConst)]
                last = [np.asarray(one.value.numpy()) for one in constants[-2:]]
                count = activation_count(last)
                found.add((op, count, len(operands) - count))
    return sorted(found)


def _operator_of_call(value: Any) -> str | None:
    """The integer operator that a value calls, if it does."""
    if not isinstance(value, ir.Call) or getattr(value.op, "name", "") != "relax.call_tir":
        return None
    return operator_name(str(value.args[0].name_hint))


def _pattern(op: str, activations: int, constants: int) -> Any:
    operands = [wildcard() for _ in range(activations)] + [is_const() for _ in range(constants)]
    call = is_op("relax.call_tir")(is_gv(), is_tuple(operands), add_constraint=False)

    def is_this_operator(context: PatternCheckContext) -> bool:
        return _operator_of_call(context.matched_expr) == op

    return FusionPattern(f"{CODEGEN}.{op}", call, check=is_this_operator)


def reject_wrong_boundaries(module: Any) -> None:
    """A composite must take and give int8 tensors: anything else is a match gone wrong."""
    for function in module.functions.values():
        if not isinstance(function, relax.Function) or "Composite" not in (function.attrs or {}):
            continue
        for end in (*function.params, function.body):
            if not isinstance(end.ty, relax.TensorType) or str(end.ty.dtype) != "int8":
                raise ModelError(
                    f"The match {function.attrs['Composite']} has {end.ty} at its boundary, "
                    "where only int8 tensors are allowed."
                )
