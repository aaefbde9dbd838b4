"""The QDQ module, read from quantize to quantize.

What comes in: a QDQ `IRModule` as `accelsim.quantize` documents it. What goes out: a `Network`. It
must not know the legalized form: a mistake made there must not be repeated here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from accelsim.errors import ModelError
from accelsim.quantize.layouts import variable_axes
from accelsim.reference.flow import (
    Claim,
    Island,
    Node,
    Source,
    Weight,
    applied,
    constant_value,
    ending_of,
    operator_of,
    shape_of,
)
from accelsim.reference.host import cut
from accelsim.reference.network import Host, Network, Prepared, QuantizedTensor, ReferenceLayer
from accelsim.reference.operators import HOST, Operator, claim_of


class Walk:
    """State of one walk over the bindings of `main`."""

    def __init__(
        self,
        function: Any,
        members: Mapping[str, tuple[str, ...]],
        host: Collection[str],
        rounding: str,
    ) -> None:
        self.function = function
        self.members = members
        self.host = host
        self.rounding = rounding
        self.axes = variable_axes(function)
        self.values: dict[Any, Any] = {}
        self.tensors: dict[str, QuantizedTensor] = {}
        self.variables: dict[str, Any] = {}  # tensor name → the variable that holds it
        self.layers: list[ReferenceLayer] = []
        self.inputs: list[tuple[str, str]] = []
        self.direct: list[str] = []
        self.prepared: list[Prepared] = []

    def value(self, expression: Any) -> Any:
        """What an operand stands for, see `reference.flow`."""
        if expression in self.values:
            return self.values[expression]
        if type(expression).__name__ == "Tuple":
            return tuple(self.value(item) for item in expression.fields)
        constant = constant_value(expression)
        return constant if constant is not None else Node(type(expression).__name__, (), None, ())

    def bind(self, variable: Any, expression: Any) -> None:
        """Evaluate one binding."""
        kind = type(expression).__name__
        if kind == "TupleGetItem":
            fields, index = self.value(expression.tuple_value), int(expression.index)
            if isinstance(fields, tuple):
                result = fields[index]
            else:
                result = Node(kind, (fields, np.asarray(index)), None, shape_of(variable))
        elif kind == "Call":
            result = self.call(variable, expression)
        else:
            result = self.value(expression)
        self.values[variable] = result

    def call(self, variable: Any, call: Any) -> Any:
        """Evaluate one operator."""
        operator = getattr(call.op, "name", "")
        operands = tuple(self.value(argument) for argument in call.args)
        if operator == "relax.quantize":
            return self.quantize(variable, call, operands)
        if operator == "relax.dequantize" and isinstance(operands[0], QuantizedTensor):
            return Source(operands[0], operands[0].shape)
        if operator == "relax.dequantize" and isinstance(operands[0], str):
            tensor = self.integer_input(call, *operands)
            return Source(tensor, tensor.shape)
        if operator == "relax.dequantize" and isinstance(operands[0], np.ndarray):
            data, scale, zero_point = operands
            axis = int(call.attrs.axis)
            return Weight(data, np.atleast_1d(scale), np.atleast_1d(zero_point), axis)
        if operator == "relax.clip" and isinstance(operands[0], QuantizedTensor):
            return self.narrow(variable, call, operands[0])
        shape = shape_of(variable) if hasattr(variable.ty, "shape") else ()
        return (
            applied(operator, call, operands, shape)
            if operands
            else Node(operator, (), None, shape)
        )

    def integer_input(
        self, call: Any, name: str, scale: np.ndarray, zero_point: np.ndarray
    ) -> QuantizedTensor:
        """A model input that is quantized already, at its first dequantize."""
        variable = call.args[0]
        stored = str(variable.ty.dtype)
        tensor = self._tensor(variable, name, stored, scale, zero_point)
        self.values[variable] = tensor
        self.inputs.append((name, tensor.name))
        self.direct.append(name)
        return tensor

    def _tensor(
        self, variable: Any, name: str, stored: str, scale: np.ndarray, zero_point: np.ndarray
    ) -> QuantizedTensor:
        """A new tensor that a variable holds."""
        if stored not in ("int8", "uint8") or np.size(scale) != 1 or np.size(zero_point) != 1:
            raise ModelError(
                f"an activation is quantized to {stored} with {np.size(scale)} scales: "
                "only int8 or uint8 per tensor are supported"
            )
        offset = 128 if stored == "uint8" else 0
        tensor = QuantizedTensor(
            name=self._unique(name),
            shape=shape_of(variable),
            scale=np.float32(np.reshape(scale, ())),
            zero_point=int(np.reshape(zero_point, ())) - offset,
            stored=stored,
            axis=self.axes.get(variable, 0),
            divides=self.rounding == "onnxruntime",
        )
        self.tensors[tensor.name] = tensor
        self.variables[tensor.name] = variable
        return tensor

    def quantize(self, variable: Any, call: Any, operands: tuple[Any, ...]) -> QuantizedTensor:
        """The end of a layer, or the boundary quantize of a model input."""
        value, scale, zero_point = operands
        name = _span(call) or f"tensor{len(self.tensors)}"
        tensor = self._tensor(variable, name, str(call.attrs.out_dtype), scale, zero_point)
        if isinstance(value, str):
            self.inputs.append((value, tensor.name))
        else:
            self._end(call.args[0], value, tensor)
        return tensor

    def cut(self, *results: Any) -> tuple[Any, list[Any]]:
        """The float code of `results`, and what it starts from: tensors, and names of inputs."""
        stops = [var for var, value in self.values.items() if isinstance(value, QuantizedTensor)]
        module, free = cut(self.function, results, set(stops))
        return module, [self.values[variable] for variable in free]

    def narrow(self, variable: Any, call: Any, tensor: QuantizedTensor) -> QuantizedTensor:
        """A clip on the integer tensor itself: the exporter's limits."""
        low, high = (int(call.args[i].value) - tensor.offset for i in (1, 2))
        narrowed = replace(
            tensor,
            clamp_min=max(tensor.clamp_min, low),
            clamp_max=min(tensor.clamp_max, high),
        )
        self.tensors[tensor.name] = narrowed
        self.variables[tensor.name] = variable
        return narrowed

    def _unique(self, name: str) -> str:
        unique, count = name, 0
        while unique in self.tensors:
            count += 1
            unique = f"{name}_{count}"
        return unique

    def _end(self, expression: Any, value: Any, output: QuantizedTensor) -> None:
        """Record what ends in a tensor: a layer, or float operators on the model's inputs."""
        ending = ending_of(value)
        if output.name not in self.host:
            code = partial(self.cut, expression)
            found = claim_of(Island(value, ending, output, self.rounding, code))
            if found is not None:
                self.layers.append(self._layer(*found, output))
                return
        module, sources = self.cut(expression)
        tensors = [one for one in sources if isinstance(one, QuantizedTensor)]
        if tensors:
            given = tuple(one if isinstance(one, str) else None for one in sources)
            self.layers.append(self._host_layer(value, output, Host(module, given), tensors))
        else:  # of the model's own inputs, or of constants alone
            parameters = module["main"].params
            shapes = tuple(shape_of(parameter) for parameter in parameters)
            dtypes = tuple(str(parameter.ty.dtype) for parameter in parameters)
            self.prepared.append(Prepared(output.name, tuple(sources), shapes, dtypes, module))

    def _layer(self, operator: Operator, claim: Claim, output: QuantizedTensor) -> ReferenceLayer:
        inputs = [source.tensor for source in claim.sources]
        return ReferenceLayer(
            name=output.name,
            op=claim.op,
            members=self.members.get(output.name, (output.name,)),
            inputs=tuple(tensor.name for tensor in inputs),
            output=output.name,
            input_shapes=tuple(tensor.layout for tensor in inputs),
            macs=claim.macs,
            family=operator.name,
            core=claim.core,
            core_shapes=tuple(source.shape for source in claim.sources),
            core_output_shape=claim.shape,
            limits=claim.limits,
        )

    def _host_layer(
        self, value: Any, output: QuantizedTensor, core: Host, inputs: list[QuantizedTensor]
    ) -> ReferenceLayer:
        """A layer in floats, from the dequantizes of its inputs to its quantize."""
        return ReferenceLayer(
            name=output.name,
            op=operator_of(value),
            members=self.members.get(output.name, (output.name,)),
            inputs=tuple(tensor.name for tensor in inputs),
            output=output.name,
            input_shapes=tuple(tensor.layout for tensor in inputs),
            macs=0,
            family=HOST,
            core=core,
            core_shapes=tuple(tensor.shape for tensor in inputs),
            core_output_shape=output.shape,
        )


def _span(expression: Any) -> str | None:
    source = getattr(getattr(expression, "span", None), "source_name", None)
    return str(source.name) if source is not None else None


def walk(
    function: Any,
    members: Mapping[str, tuple[str, ...]],
    host: Collection[str] = (),
    rounding: str = "fp32",
) -> Walk:
    """Evaluate every binding of a QDQ function; layers of `host` are read as floats."""
    state = Walk(function, members, host, rounding)
    for parameter in function.params:
        state.values[parameter] = str(parameter.name)
    for block in function.body.blocks:
        for binding in block.bindings:
            state.bind(binding.var, binding.value)
    return state


def layer_members(module: Any) -> dict[str, tuple[str, ...]]:
    """Layer name → the user's operators fused into it, as the module's attributes record them."""
    stored = (module.attrs or {}).get("accelsim.members", {})
    return {str(name): tuple(str(one) for one in stored[name]) for name in stored}


def read_network(module: Any, host: Collection[str] = (), rounding: str = "fp32") -> Network:
    """The network of a QDQ module's `main`, with its integer definition in a rounding.

    Layers named in `host`, and those that no integer definition exists for, are of kind "host".
    `ModelError` names a layer that cannot be computed from quantized tensors.
    """
    function = module["main"]
    state = walk(function, layer_members(module), host, rounding)
    result = state.value(function.body.body)
    results = result if isinstance(result, tuple) else (result,)
    outputs, tail = [], False
    for item in results:
        if isinstance(item, QuantizedTensor):
            outputs.append(item.name)
        elif isinstance(item, Source) and item.shape == item.tensor.shape:
            outputs.append(item.tensor.name)
        else:
            tail = True
    if not state.layers:
        raise ModelError(_nothing_quantized(state))
    code, sources = state.cut(*_fields(function, result)) if tail else (None, [])
    taken = [one for one in sources if isinstance(one, QuantizedTensor)]
    given = tuple(one if isinstance(one, str) else None for one in sources)
    return Network(
        tensors=dict(state.tensors),
        layers=tuple(state.layers),
        inputs=tuple(state.inputs),
        outputs=tuple(outputs),
        direct=tuple(state.direct),
        integer_outputs=tuple(isinstance(item, QuantizedTensor) for item in results),
        float_tail=tail,
        tail=Host(code, given) if taken else None,
        tail_inputs=tuple(one.name for one in taken),
        prepared=tuple(state.prepared),
    )


def _nothing_quantized(state: Walk) -> str:
    """Why no layer can be verified."""
    found = [operator_of(one) for one in state.values.values() if isinstance(one, Node)]
    names = ", ".join(dict.fromkeys(found))
    if not names:
        return "the model computes nothing: it has no operator"
    return f"no layer of the model is quantized, so all of it runs on the host in float32: {names}"


def _fields(function: Any, result: Any) -> tuple[Any, ...]:
    """The expressions that `main` returns: those of a tuple, or the only one."""
    returned = function.body.body
    if not isinstance(result, tuple):
        return (returned,)
    values = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    while returned in values:
        returned = values[returned]
    return tuple(returned.fields)
