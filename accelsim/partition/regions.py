"""A partitioned function as a `Region`: layers over named int8 tensors in NHWC.

What comes in: a Relax function that merging annotated for the `accelsim` code generator. What goes
out: a `Region`. It must not know the network outside of the region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir, relax
from tvm.ir.expr import GenericConst

from accelsim.artifacts import Layer, Region, Tensor
from accelsim.errors import ModelError
from accelsim.legalize.form import Decoded, TensorForm, activation_count, decode, operator_name
from accelsim.legalize.layout import nhwc
from accelsim.partition.symbols import RegionCall, region_calls


@dataclass(slots=True)
class _Reader:
    """State of reading one function."""

    members: Mapping[str, tuple[str, ...]]
    tensors: dict[str, Tensor]
    names: dict[Any, str]  # variable of the function → tensor name
    layers: list[Layer]


def regions_of(
    module: Any, layers: Mapping[str, tuple[str, ...]], members: Mapping[str, tuple[str, ...]]
) -> tuple[Region, ...]:
    """The regions of a partitioned module in execution order.

    `layers` is `Legalized.layers`; `members` maps each QDQ layer to the user's operators in it.
    """
    return tuple(region_of(call, layers, members) for call in region_calls(module))


def region_of(
    call: RegionCall, layers: Mapping[str, tuple[str, ...]], members: Mapping[str, tuple[str, ...]]
) -> Region:
    """One partitioned function as a region. Raises ModelError if it is not of the expected form.

    An input carries the name of the layer, or of the model's input, that it comes from. Where two
    results of the function are the same bytes (a reshape), `outputs` names their tensor twice.
    """
    reader = _Reader(_merged_members(layers, members), {}, {}, [])
    function = call.function
    composites: dict[Any, Any] = {}
    for parameter, name in zip(function.params, call.inputs, strict=True):
        reader.names[parameter] = name
    for block in function.body.blocks:
        for binding in block.bindings:
            var, value = binding.var, binding.value
            if isinstance(value, relax.Function | ir.Tuple):
                composites[var] = value
            elif isinstance(value, ir.Call) and value.op in composites:
                _read_layer(reader, var, value, composites[value.op])
            elif isinstance(value, ir.Var):
                reader.names[var] = reader.names[value]
            else:
                raise ModelError(f"{call.symbol} has an unexpected {type(value).__name__}.")
    result = composites.get(function.body.body, function.body.body)
    results = tuple(result.fields) if isinstance(result, ir.Tuple) else (result,)
    return Region(
        symbol=call.symbol,
        tensors=dict(reader.tensors),
        inputs=call.inputs,
        outputs=tuple(reader.names[expr] for expr in results),
        layers=tuple(reader.layers),
    )


def _merged_members(
    layers: Mapping[str, tuple[str, ...]], members: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(member for part in parts for member in members.get(part, (part,)))
        for name, parts in layers.items()
    }


def _read_layer(reader: _Reader, var: Any, call: Any, composite: Any) -> None:
    """Add the layer of one call of a composite function."""
    inner, renamed = _inner_call(composite)
    op = operator_name(str(inner.args[0].name_hint))
    if op is None:
        raise ModelError(f"Composite {composite.attrs['Composite']} calls {inner.args[0]}.")
    operands = [renamed.get(operand, operand) for operand in inner.args[1].fields]
    constants = [
        np.asarray(operand.value.numpy())
        for operand in operands
        if isinstance(operand, GenericConst)
    ]
    if len(constants) < 2 or activation_count(constants) + len(constants) != len(operands):
        raise ModelError(f"Composite {composite.attrs['Composite']} lost a constant parameter.")
    # Bound by use: the order of a composite's parameters is not that of the operator's operands.
    outer = dict(zip(composite.params, call.args, strict=True))
    inputs = [outer.get(operand) for operand in operands[: activation_count(constants)]]
    if None in inputs:
        raise ModelError(f"Composite {composite.attrs['Composite']} lost an activation.")
    decoded = decode(op, constants)
    for expr, form in zip(inputs, decoded.inputs, strict=True):
        name = reader.names[expr]
        if name not in reader.tensors:
            reader.tensors[name] = _tensor(name, expr, form)
    names = tuple(reader.names[expr] for expr in inputs)
    if decoded.compute is None:
        reader.names[var] = names[0]
        return
    _append(reader, var, inner, names, decoded)


def _append(
    reader: _Reader, var: Any, inner: Any, inputs: tuple[str, ...], decoded: Decoded
) -> None:
    source = getattr(getattr(inner, "span", None), "source_name", None)
    name = str(source.name) if source is not None else str(var.name)
    if decoded.compute is None:
        raise ModelError(f"Layer {name!r} computes nothing.")
    reader.names[var] = name
    reader.tensors[name] = _tensor(name, var, decoded.output)
    reader.layers.append(
        Layer(
            name=name,
            op=decoded.op,
            members=reader.members.get(name, (name,)),
            inputs=inputs,
            output=name,
            compute=decoded.compute,
        )
    )


def _inner_call(composite: Any) -> tuple[Any, dict[Any, Any]]:
    """The one operator call of a composite, and what its other variables stand for."""
    renamed: dict[Any, Any] = {}
    calls = []
    for block in composite.body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, ir.Call):
                calls.append(binding.value)
            else:
                renamed[binding.var] = binding.value
    if len(calls) != 1:
        raise ModelError(f"Composite {composite.attrs['Composite']} has {len(calls)} operators.")
    return calls[0], renamed


def _tensor(name: str, expr: Any, form: TensorForm) -> Tensor:
    return Tensor(name, nhwc(expr.ty.shape, form.layout), form.zero_point, form.scale, form.layout)
