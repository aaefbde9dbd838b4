"""Short symbols for regions, and what stands at their boundary.

What comes in: a partitioned module, whose regions are named after all their operators. What goes
out: the same module with regions called accelsim_region_0, accelsim_region_1, … in the order of
their calls. It must not know what a region computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import ir, relax

CODEGEN = "accelsim"
"""The name of the code generator: `relax.ext.accelsim`."""


@dataclass(frozen=True, slots=True)
class RegionCall:
    """A call of a region in `main`: the user's names of what it is given."""

    symbol: str
    function: Any
    inputs: tuple[str, ...]


def with_short_symbols(module: Any) -> Any:
    """`module` with its regions renamed; spans and attributes stay."""
    main = module["main"]
    renamed: dict[Any, Any] = {}
    for binding in _bindings(main):
        callee = _region_callee(module, binding.value)
        if callee is not None and callee not in renamed:
            renamed[callee] = f"{CODEGEN}_region_{len(renamed)}"
    functions: dict[Any, Any] = {}
    fresh: dict[Any, Any] = {}
    for var, function in module.functions_items():
        if var in renamed:
            function = function.with_attr("global_symbol", renamed[var])
            fresh[var] = ir.GlobalVar(renamed[var])
            relax.expr._update_type(fresh[var], function.ty)
            functions[fresh[var]] = function
        elif var.name_hint != "main":
            functions[var] = function
    functions[module.get_global_var("main")] = _with_callees(main, fresh)
    result = tvm.IRModule(functions, attrs=module.attrs)
    return relax.transform.Normalize()(result)


def region_calls(module: Any) -> tuple[RegionCall, ...]:
    """The regions of `module` in the order of their calls in `main`."""
    names: dict[Any, str] = {var: str(var.name) for var in module["main"].params}
    calls = []
    for binding in _bindings(module["main"]):
        value = binding.value
        callee = _region_callee(module, value)
        if callee is not None:
            function = module[callee]
            inputs = tuple(names[argument] for argument in value.args)
            calls.append(RegionCall(str(function.attrs["global_symbol"]), function, inputs))
            names.update(_result_names(binding.var, function))
        elif isinstance(value, ir.TupleGetItem):
            field = f"{names.get(value.tuple_value, '')}#{value.index}"
            names[binding.var] = names.get(field, str(binding.var.name))
        else:
            names[binding.var] = _span_name(value) or str(binding.var.name)
    return tuple(calls)


def _result_names(var: Any, function: Any) -> dict[Any, str]:
    """The user's names of a region's results: of `var`, or of its fields as "var#index"."""
    spans = {}
    for block in function.body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, relax.Function):
                inner = [b.value for part in binding.value.body.blocks for b in part.bindings]
                spans[binding.var] = next(filter(None, map(_span_name, inner)), None)
            elif isinstance(binding.value, ir.Call):
                spans[binding.var] = spans.get(binding.value.op)
            elif isinstance(binding.value, ir.Tuple | ir.Var):
                spans[binding.var] = binding.value
    result = spans.get(function.body.body, function.body.body)
    if not isinstance(result, ir.Tuple):
        return {var: result if isinstance(result, str) else str(var.name)}
    names: dict[Any, str] = {var: str(var.name)}
    for index, field in enumerate(result.fields):
        key = f"{var.name}#{index}"
        names[key] = spans.get(field) or key
    return names


def _bindings(function: Any) -> list[Any]:
    return [binding for block in function.body.blocks for binding in block.bindings]


def _region_callee(module: Any, value: Any) -> Any | None:
    if not isinstance(value, ir.Call) or not isinstance(value.op, ir.GlobalVar):
        return None
    attrs = module[value.op].attrs
    return value.op if attrs and attrs.get("Codegen") == CODEGEN else None


def _with_callees(function: Any, fresh: dict[Any, Any]) -> Any:
    blocks = []
    for block in function.body.blocks:
        bindings = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, ir.Call) and value.op in fresh:
                value = ir.Call(fresh[value.op], value.args, value.attrs, value.ty_args, value.span)
            bindings.append(relax.VarBinding(binding.var, value))
        dataflow = isinstance(block, relax.DataflowBlock)
        blocks.append((relax.DataflowBlock if dataflow else relax.BindingBlock)(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    ret = function.ret_ty if hasattr(function, "ret_ty") else function.ty.ret
    return relax.Function(function.params, body, ret, function.is_pure, function.attrs)


def _span_name(value: Any) -> str | None:
    source = getattr(getattr(value, "span", None), "source_name", None)
    return str(source.name) if source is not None else None
