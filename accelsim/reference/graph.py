"""The QDQ module, read from quantize to quantize.

What comes in: a QDQ `IRModule` as `accelsim.quantize` documents it. What goes out: a `Network`. It
must not know the legalized form: a mistake made there must not be repeated here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from accelsim.errors import ModelError
from accelsim.reference.flow import Flow, Unknown, constant_value, flow_of, fold, shape_of
from accelsim.reference.host import cut
from accelsim.reference.network import (
    Add,
    Affine,
    Core,
    Host,
    Move,
    Network,
    Pool,
    Prepared,
    QuantizedTensor,
    ReferenceLayer,
    Shape,
)
from accelsim.reference.operators import Weight


class Walk:
    """State of one walk over the bindings of `main`."""

    def __init__(
        self, function: Any, members: Mapping[str, tuple[str, ...]], host: Collection[str]
    ) -> None:
        self.function = function
        self.members = members
        self.host = host
        self.values: dict[Any, Any] = {}
        self.tensors: dict[str, QuantizedTensor] = {}
        self.variables: dict[str, Any] = {}  # tensor name → the variable that holds it
        self.layers: list[ReferenceLayer] = []
        self.inputs: list[tuple[str, str]] = []
        self.prepared: list[Prepared] = []

    def value(self, expression: Any) -> Any:
        """What an operand stands for."""
        if expression in self.values:
            return self.values[expression]
        constant = constant_value(expression)
        return constant if constant is not None else Unknown(type(expression).__name__)

    def bind(self, variable: Any, expression: Any) -> None:
        """Evaluate one binding."""
        kind = type(expression).__name__
        if kind == "Tuple":
            result: Any = tuple(self.value(item) for item in expression.fields)
        elif kind == "TupleGetItem":
            fields = self.value(expression.tuple_value)
            known = isinstance(fields, tuple)
            result = fields[int(expression.index)] if known else Unknown("an element of a tuple")
        elif kind == "Call":
            result = self.call(variable, expression)
        else:
            result = self.value(expression)
        self.values[variable] = result

    def call(self, variable: Any, call: Any) -> Any:
        """Evaluate one operator."""
        operator = getattr(call.op, "name", "")
        operands = [self.value(argument) for argument in call.args]
        if not operands:
            return Unknown(operator)
        if operator == "relax.quantize":
            return self.quantize(variable, call, operands)
        if operator == "relax.dequantize":
            return self.dequantize(call, operands)
        if operator == "relax.clip" and isinstance(operands[0], QuantizedTensor):
            return self.narrow(variable, call, operands[0])
        if all(isinstance(operand, np.ndarray) for operand in operands[:1]):
            return fold(operator, call, operands[0])
        if isinstance(operands[0], Weight):
            turned = operator == "relax.permute_dims" and operands[0].values.ndim == 2
            return replace(operands[0], transposed=True) if turned else Unknown(operator)
        if not hasattr(variable.ty, "shape"):
            return Unknown(operator)  # several results, as of a split
        return flow_of(operator, call, operands, shape_of(variable))

    def dequantize(self, call: Any, operands: list[Any]) -> Any:
        """Of an activation: the start of a flow. Of a constant: a weight."""
        data, scale, zero_point = operands
        if isinstance(data, QuantizedTensor):
            return Flow((data.name,), (data.shape,), data.shape)
        if isinstance(data, np.ndarray):
            axis = int(call.attrs.axis)
            return Weight(data, np.atleast_1d(scale), np.atleast_1d(zero_point), axis)
        return Unknown("relax.dequantize")

    def quantize(self, variable: Any, call: Any, operands: list[Any]) -> QuantizedTensor:
        """The end of a layer, or the boundary quantize of a model input."""
        flow, scale, zero_point = operands
        stored = str(call.attrs.out_dtype)
        if stored not in ("int8", "uint8") or np.size(scale) != 1 or np.size(zero_point) != 1:
            raise ModelError(
                f"an activation is quantized to {stored} with {np.size(scale)} scales: "
                "only int8 or uint8 per tensor are supported"
            )
        offset = 128 if stored == "uint8" else 0
        tensor = QuantizedTensor(
            name=self._unique(_span(call) or f"tensor{len(self.tensors)}"),
            shape=shape_of(variable),
            scale=np.float32(np.reshape(scale, ())),
            zero_point=int(np.reshape(zero_point, ())) - offset,
            stored=stored,
        )
        self.tensors[tensor.name] = tensor
        self.variables[tensor.name] = variable
        if isinstance(flow, str):
            self.inputs.append((flow, tensor.name))
        else:
            self._end(call.args[0], flow, tensor)
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

    def _end(self, value: Any, flow: Any, output: QuantizedTensor) -> None:
        """Record what ends in a tensor: a layer, or float operators on the model's inputs."""
        if isinstance(flow, Flow) and output.name not in self.host and self._exact(flow, output):
            self.layers.append(self._layer(flow, output))
            return
        module, sources = self.cut(value)
        if sources and all(isinstance(one, QuantizedTensor) for one in sources):
            self.layers.append(self._host_layer(flow, output, module, sources))
        elif sources and all(isinstance(one, str) for one in sources):
            shapes = tuple(shape_of(parameter) for parameter in module["main"].params)
            self.prepared.append(Prepared(output.name, tuple(sources), shapes, module))
        else:
            raise ModelError(
                f"layer '{output.name}': operator {_operator(flow)} on a constant, or on quantized "
                "and float tensors together, is not supported by the reference"
            )

    def _exact(self, flow: Flow, output: QuantizedTensor) -> bool:
        """Whether a flow into a tensor has an integer definition."""
        inputs = [self.tensors[name] for name in flow.sources]
        maximum = isinstance(flow.core, Pool) and flow.core.kind == "max"
        known = all(len(one.shape) in (2, 4) for one in (*inputs, output))
        return known and (not maximum or _same_scale(inputs[0], output))

    def _layer(self, flow: Flow, output: QuantizedTensor) -> ReferenceLayer:
        inputs = [self.tensors[name] for name in flow.sources]
        core = flow.core or Move()
        core_shape = flow.core_shape or flow.source_shapes[0]
        moved = tuple(t.shape for t in inputs) != flow.source_shapes or flow.shape != core_shape
        return ReferenceLayer(
            name=output.name,
            op=_op_name(core, flow, moved),
            members=self.members.get(output.name, (output.name,)),
            inputs=flow.sources,
            output=output.name,
            input_shapes=tuple(tensor.layout for tensor in inputs),
            output_shape=output.layout,
            macs=_macs(core, core_shape),
            core=core,
            core_shapes=flow.source_shapes,
            core_output_shape=core_shape,
            limits=flow.limits,
        )

    def _host_layer(
        self, flow: Any, output: QuantizedTensor, module: Any, inputs: list[QuantizedTensor]
    ) -> ReferenceLayer:
        """A layer in floats, from the dequantizes of its inputs to its quantize."""
        return ReferenceLayer(
            name=output.name,
            op=_operator(flow),
            members=self.members.get(output.name, (output.name,)),
            inputs=tuple(tensor.name for tensor in inputs),
            output=output.name,
            input_shapes=tuple(tensor.layout for tensor in inputs),
            output_shape=output.layout,
            macs=0,
            core=Host(module),
            core_shapes=tuple(tensor.shape for tensor in inputs),
            core_output_shape=output.shape,
        )


def _same_scale(a: QuantizedTensor, b: QuantizedTensor) -> bool:
    return a.scale == b.scale and a.zero_point == b.zero_point


def _macs(core: Core, output_shape: Shape) -> int:
    return math.prod(output_shape) * core.weight[0].size if isinstance(core, Affine) else 0


def _operator(flow: Any) -> str:
    """What to call a float value by: its last operator."""
    if isinstance(flow, Flow):
        return _op_name(flow.core or Move(), flow, False)
    operator = flow.operator if isinstance(flow, Unknown) else "constant"
    return operator.removeprefix("relax.").removeprefix("nn.")


def _op_name(core: Core, flow: Flow, moved: bool) -> str:
    if isinstance(core, Affine):
        if core.weight.ndim == 2:
            return "linear"
        depthwise = core.groups > 1 and core.weight.shape[:2] == (core.groups, 1)
        return "depthwise_conv2d" if depthwise else "conv2d"
    if isinstance(core, Add):
        return "add"
    if isinstance(core, Pool):
        return "max_pool2d" if core.kind == "max" else "avg_pool2d"
    if flow.limits != (-math.inf, math.inf):
        return "clip"
    return "reshape" if moved else "requantize"


def _span(expression: Any) -> str | None:
    source = getattr(getattr(expression, "span", None), "source_name", None)
    return str(source.name) if source is not None else None


def walk(function: Any, members: Mapping[str, tuple[str, ...]], host: Collection[str] = ()) -> Walk:
    """Evaluate every binding of a QDQ function; layers of `host` are read as floats."""
    state = Walk(function, members, host)
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


def read_network(module: Any, host: Collection[str] = ()) -> Network:
    """The network of a QDQ module's `main`.

    Layers named in `host`, and those that no integer definition exists for, are of kind "host".
    `ModelError` names a layer that cannot be computed from quantized tensors.
    """
    function = module["main"]
    state = walk(function, layer_members(module), host)
    result = state.value(function.body.body)
    results = result if isinstance(result, tuple) else (result,)
    outputs, tail = [], False
    for item in results:
        if isinstance(item, QuantizedTensor):
            outputs.append(item.name)
        elif isinstance(item, Flow) and item.plain and item.source_shapes[0] == item.shape:
            outputs.append(item.sources[0])
        else:
            tail = True
    if not state.layers:
        raise ModelError("the model has no quantized layer: quantize it first")
    code, sources = state.cut(*_fields(function, result)) if tail else (None, [])
    plain = bool(sources) and all(isinstance(one, QuantizedTensor) for one in sources)
    return Network(
        tensors=dict(state.tensors),
        layers=tuple(state.layers),
        inputs=tuple(state.inputs),
        outputs=tuple(outputs),
        float_tail=tail,
        tail=code if plain else None,
        tail_inputs=tuple(one.name for one in sources) if plain else (),
        prepared=tuple(state.prepared),
    )


def _fields(function: Any, result: Any) -> tuple[Any, ...]:
    """The expressions that `main` returns: those of a tuple, or the only one."""
    returned = function.body.body
    if not isinstance(result, tuple):
        return (returned,)
    for block in function.body.blocks:
        for binding in block.bindings:
            if binding.var.same_as(returned):
                returned = binding.value
    return tuple(returned.fields)
