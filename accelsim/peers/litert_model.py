"""TensorFlow Lite models built in process, and run by LiteRT's reference kernels.

What comes in: tensors and operators with their options. What goes out: the flatbuffer, and its
outputs. It must not know what the NPU computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

TYPES = {
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int32": schema.TensorType.INT32,
    "float32": schema.TensorType.FLOAT32,
}


@dataclass(frozen=True, slots=True)
class TfliteTensor:
    """A tensor of a model: an activation, or a constant where it has values."""

    shape: tuple[int, ...]
    scales: tuple[float, ...] = ()  # one, or one along `axis`
    zero: int = 0
    dtype: str = "int8"
    axis: int = 0
    values: NDArray[Any] | None = None
    name: str = ""  # t and its number where empty


def constant(values: Any, dtype: str = "int32") -> TfliteTensor:
    """A constant without scales, as shapes and axes are given."""
    array = np.asarray(values, dtype)
    return TfliteTensor(array.shape, dtype=dtype, values=array)


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a model; tensors by number, -1 for an input that is absent."""

    operator: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: str = ""
    version: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)


def tflite_model(
    operator: str,
    inputs: Sequence[TfliteTensor | None],
    outputs: Sequence[TfliteTensor],
    options: str = "",
    version: int = 1,
    **fields: Any,
) -> bytes:
    """A model of one operator; activations among the inputs are the model's, in their order."""
    given = [one for one in inputs if one is not None]
    places = iter(range(len(given)))
    taken = tuple(-1 if one is None else next(places) for one in inputs)
    made = tuple(len(given) + number for number in range(len(outputs)))
    step = Step(operator, taken, made, options, version, fields)
    sources = [number for number, one in enumerate(given) if one.values is None]
    return tflite_network([*given, *outputs], [step], sources, made)


def tflite_network(
    tensors: Sequence[TfliteTensor],
    steps: Sequence[Step],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """A model of several operators in the order in which they run."""
    model = schema.ModelT()
    model.version = 3
    model.description = "made"
    model.buffers = [_buffer(None), *[_buffer(one.values) for one in tensors]]
    model.operatorCodes = [
        _code(getattr(schema.BuiltinOperator, one.operator), one.version) for one in steps
    ]
    graph = schema.SubGraphT()
    graph.tensors = [_tensor(one, number) for number, one in enumerate(tensors)]
    graph.inputs, graph.outputs = list(inputs), list(outputs)
    graph.operators = [_operator(one, number) for number, one in enumerate(steps)]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _operator(one: Step, number: int) -> Any:
    step = schema.OperatorT()
    step.opcodeIndex = number
    step.inputs, step.outputs = list(one.inputs), list(one.outputs)
    if one.options:
        step.builtinOptionsType = getattr(schema.BuiltinOptions, one.options)
        step.builtinOptions = getattr(schema, f"{one.options}T")()
        for key, value in one.fields.items():
            setattr(step.builtinOptions, key, value)
    return step


def _code(number: int, version: int) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = number
    code.deprecatedBuiltinCode = min(number, 127)
    code.version = version
    return code


def _buffer(values: NDArray[Any] | None) -> Any:
    buffer = schema.BufferT()
    if values is not None:
        buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    return buffer


def _tensor(one: TfliteTensor, number: int) -> Any:
    tensor = schema.TensorT()
    tensor.name = one.name or f"t{number}"
    tensor.shape = list(one.shape)
    tensor.type = TYPES[one.dtype]
    tensor.buffer = number + 1
    if one.scales:
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = list(one.scales)
        tensor.quantization.zeroPoint = [one.zero] * len(one.scales)
        tensor.quantization.quantizedDimension = one.axis
    return tensor


def tflite_outputs(model: bytes, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
    """Outputs of the model by the reference kernels, which round as the specification says."""
    interpreter = Interpreter(
        model_content=model,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()]
