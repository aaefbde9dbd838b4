"""The imported Relax module in the form that `accelsim.quantize` documents.

What comes in: a QDQ module as imported, and layer names in the order of its quantize calls. What
goes out: the same computation with one dequantize for each consumer, a span on every call, and the
layers' members as a module attribute. It must not know torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

from accelsim.errors import ModelError
from accelsim.quantize.names import LayerNames
from accelsim.quantize.spans import with_members, with_span

_QUANTIZE, _DEQUANTIZE, _CLIP = "relax.quantize", "relax.dequantize", "relax.clip"


def canonical(
    module: Any, names: LayerNames, model: str, inputs: Sequence[str] | None = None
) -> Any:
    """Rewrite `main`, whose parameters get the names of `inputs`, where these are given.

    Raises:
        ModelError: control flow, or quantize calls that do not match the names.
    """
    function = module["main"]
    bindings = _bindings(function, model)
    owners, producers = _owners(bindings, function.body.body, names, model)
    parameters = list(function.params)
    if inputs is not None and len(inputs) == len(parameters):
        parameters = [relax.Var(n, p.ty) for n, p in zip(inputs, parameters, strict=True)]
    renamed = dict(zip(function.params, parameters, strict=True))
    rewriter = _Rewriter(bindings, owners, producers, renamed)
    builder = relax.BlockBuilder()
    with builder.function("main", parameters):
        with builder.dataflow():
            for variable, value in bindings.items():
                rewriter.emit(builder, variable, value)
            output = builder.emit_output(rewriter.result(builder, function.body.body))
        builder.emit_func_output(output)
    members = {layer.name: layer.members for layer in names.quantized if layer.members}
    if names.tail is not None:
        members[names.tail.name] = names.tail.members
    return with_members(builder.get(), members)


def op_name(value: Any) -> str:
    """Operator of a call, "" for anything else."""
    if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op):
        return str(value.op.name)
    return ""


def _bindings(function: Any, model: str) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for block in function.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding) or isinstance(binding.value, relax.If):
                raise ModelError(f"model {model} has control flow, which is not supported")
            found[binding.var] = binding.value
    return found


def _inputs(value: Any) -> list[Any]:
    """Variables that a bound value reads."""
    if isinstance(value, relax.Var):
        return [value]
    if isinstance(value, relax.Call):
        return [variable for argument in value.args for variable in _inputs(argument)]
    if isinstance(value, relax.Tuple):
        return [variable for field in value.fields for variable in _inputs(field)]
    if isinstance(value, relax.TupleGetItem):
        return _inputs(value.tuple_value)
    return []


def _owners(
    bindings: Mapping[Any, Any], result: Any, names: LayerNames, model: str
) -> tuple[dict[Any, str], dict[Any, str]]:
    """Variable → layer name, and quantized variable → name of its layer."""
    owners: dict[Any, str] = {}
    producers: dict[Any, str] = {}
    ends = [
        variable
        for variable, value in bindings.items()
        if op_name(value) == _QUANTIZE and not isinstance(value.args[0], tvm.ir.GenericConst)
    ]
    if len(ends) != len(names.quantized):
        raise ModelError(
            f"model {model} has {len(ends)} quantize calls after import and "
            f"{len(names.quantized)} before; its layers cannot be named"
        )
    for variable, layer in zip(ends, names.quantized, strict=True):
        producers[variable] = layer.name
        _claim(variable, layer.name, bindings, owners)
    for variable, value in bindings.items():
        if op_name(value) == _CLIP and value.args[0] in producers:
            producers[variable] = owners[variable] = producers[value.args[0]]
    tail = names.tail.name if names.tail is not None else None
    for variable in _inputs(result):
        if tail is not None:
            _claim(variable, tail, bindings, owners)
    return owners, producers


def _claim(end: Any, name: str, bindings: Mapping[Any, Any], owners: dict[Any, str]) -> None:
    """Give `name` to `end` and to what it needs, back to the dequantize calls."""
    pending = [end]
    while pending:
        variable = pending.pop()
        if variable not in bindings or variable in owners:
            continue
        if op_name(bindings[variable]) == _DEQUANTIZE:
            continue
        owners[variable] = name
        pending.extend(_inputs(bindings[variable]))


class _Rewriter:
    """Emits bindings anew; dequantize calls are emitted where they are used."""

    def __init__(
        self,
        bindings: Mapping[Any, Any],
        owners: Mapping[Any, str],
        producers: Mapping[Any, str],
        parameters: Mapping[Any, Any],
    ) -> None:
        self._bindings = bindings
        self._owners = owners
        self._producers = producers
        self._emitted: dict[Any, Any] = dict(parameters)

    def emit(self, builder: Any, variable: Any, value: Any) -> None:
        """Emit one binding, unless it is a dequantize."""
        if op_name(value) == _DEQUANTIZE:
            return
        if isinstance(value, relax.Var):  # a copy: the output of the block
            if value in self._bindings and op_name(self._bindings[value]) == _DEQUANTIZE:
                self._emitted[variable] = value  # resolved by whoever reads it
            else:
                self._emitted[variable] = self._emitted.get(value, value)
            return
        name = self._owners.get(variable)
        renewed = self._renew(builder, value, name)
        self._emitted[variable] = builder.emit(self._spanned(renewed, name))

    def result(self, builder: Any, value: Any) -> Any:
        """The returned expression."""
        return self._renew(builder, value, None)

    def _spanned(self, value: Any, name: str | None) -> Any:
        return with_span(value, name) if name and isinstance(value, relax.Call) else value

    def _renew(self, builder: Any, value: Any, name: str | None) -> Any:
        if isinstance(value, relax.Var):
            return self._variable(builder, value, name)
        if isinstance(value, relax.Call):
            arguments = [self._renew(builder, argument, name) for argument in value.args]
            return relax.Call(value.op, arguments, value.attrs, value.ty_args)
        if isinstance(value, relax.Tuple):
            return relax.Tuple([self._renew(builder, field, name) for field in value.fields])
        if isinstance(value, relax.TupleGetItem):
            return relax.TupleGetItem(self._renew(builder, value.tuple_value, name), value.index)
        return value

    def _variable(self, builder: Any, variable: Any, name: str | None) -> Any:
        source = variable
        while source in self._emitted and isinstance(self._bindings.get(source), relax.Var):
            source = self._bindings[source]
        bound: Any = self._bindings.get(source)
        if op_name(bound) != _DEQUANTIZE:
            return self._emitted.get(variable, variable)
        data = bound.args[0]
        own = name if name is not None else f"{self._producers.get(data, 'output')}/dequantize"
        renewed = self._renew(builder, data, own)
        call = relax.Call(bound.op, [renewed, *bound.args[1:]], bound.attrs, bound.ty_args)
        return builder.emit(with_span(call, own))
