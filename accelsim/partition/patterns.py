"""Which calls of a legalized module form regions.

What comes in: a legalized module. What goes out: the module after matching and after merging. It
must not know what the operators compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import relax
from tvm.relax.dpl import is_const, is_gv, is_op, is_tuple, wildcard
from tvm.relax.transform import FusionPattern, PatternCheckContext

from accelsim.errors import ModelError
from accelsim.legalize import Legalized
from accelsim.legalize.form import CONVOLUTIONS, SUMS, activation_count, operator_name
from accelsim.partition.symbols import CODEGEN, with_short_symbols

_CONSTANTS = {
    **dict.fromkeys(CONVOLUTIONS, 5),
    **dict.fromkeys(SUMS, 3),
    **dict.fromkeys(("add", "max_pool2d", "reshape"), 2),
}


@dataclass(frozen=True, slots=True)
class Stages:
    """The module after each step, for `--dump-ir`; `merged` is the result."""

    matched: Any
    merged: Any


def partition(legalized: Legalized) -> Stages:
    """Group the integer operators of `legalized` into as few regions as its data flow allows."""
    matched = relax.transform.FuseOpsByPattern(
        [_pattern(op) for op in _CONSTANTS], bind_constants=True
    )(legalized.module)
    reject_wrong_boundaries(matched)
    merged = relax.transform.MergeCompositeFunctions()(matched)
    return Stages(matched, with_short_symbols(merged))


def _pattern(op: str) -> Any:
    operands = [wildcard() for _ in range(activation_count(op))]
    operands += [is_const() for _ in range(_CONSTANTS[op])]
    call = is_op("relax.call_tir")(is_gv(), is_tuple(operands), add_constraint=False)

    def is_this_operator(context: PatternCheckContext) -> bool:
        callee = context.matched_expr.args[0]
        return operator_name(str(callee.name_hint)) == op

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
