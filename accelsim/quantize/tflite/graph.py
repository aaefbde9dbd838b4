"""The module under construction: what each tensor of the file is in Relax.

What comes in: a `TfliteModel` and, operator by operator, float results. What goes out: dequantized
operands, constants, and the module. It must not know operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from accelsim.errors import ModelError
from accelsim.importer.tflite.model import TfliteModel, TfliteOperator, TfliteTensor
from accelsim.quantize.layouts import CHANNELS_LAST
from accelsim.quantize.spans import with_span

op = relax.op
Value = Any  # a Relax variable or constant of floats
_INTEGERS = ("int8", "uint8")
_COUNTS = ("int32", "int64")  # of numbers that no scale belongs to


class Graph:
    """Bindings so far. Operands are emitted anew for every operator that reads them."""

    def __init__(self, model: TfliteModel) -> None:
        """Start with the model's inputs."""
        self.model = model
        self._builder: Any = relax.BlockBuilder()
        self._bindings: list[Any] = []
        self.layers: list[str] = []
        self.parameters = [_parameter(model, index) for index in model.inputs]
        self._values: dict[int, Any] = dict(zip(model.inputs, self.parameters, strict=True))
        self._operator: TfliteOperator | None = None
        self._name = ""

    @contextmanager
    def layer(self, operator: TfliteOperator, place: int = 0) -> Iterator[None]:
        """Calls emitted within carry the name of the layer that makes output `place`."""
        before = self._operator, self._name
        self._operator = operator
        self._name = self.output(operator, place).name
        yield
        self._operator, self._name = before

    def wrong(self, what: str) -> ModelError:
        """An error about the current layer; `what` completes "layer 'x' (CONV_2D) …"."""
        operator = self._operator
        assert operator is not None
        return ModelError(
            f"model {self.model.name}: layer '{operator.name}' ({operator.op}) {what}"
        )

    def emit(self, call: Any, name: str | None = None) -> Any:
        """Bind a call under the current layer's name, or another's."""
        own = name or self._name
        spanned = with_span(call, own) if own and isinstance(call, relax.Call) else call
        value = self._builder.normalize(spanned)
        variable = relax.DataflowVar(f"lv{len(self._bindings)}", value.ty)
        self._bindings.append(relax.VarBinding(variable, value))
        return variable

    def tensor(self, operator: TfliteOperator, place: int) -> TfliteTensor:
        """What the file says of an input. Raises ModelError where it is absent."""
        index = self.index(operator, place)
        if index is None:
            raise self.wrong(f"has no input {place}")
        return self.model.tensors[index]

    def index(self, operator: TfliteOperator, place: int) -> int | None:
        """The tensor of an input, None where it is absent."""
        index = operator.inputs[place] if place < len(operator.inputs) else -1
        return None if index < 0 else index

    def real(self, operator: TfliteOperator, place: int = 0) -> Value:
        """An input as floats. Raises ModelError where it has no scale."""
        tensor = self.tensor(operator, place)
        stored = self.stored(operator, place)
        if tensor.dtype == "float32":
            return stored
        if tensor.dtype not in _INTEGERS or not tensor.quantized:
            raise self.wrong(f"takes input '{tensor.name}' of {tensor.dtype} without a scale")
        return self.dequantized(stored, tensor.scales, tensor.zero_points, tensor.axis)

    def stored(self, operator: TfliteOperator, place: int) -> Any:
        """An input as the file has it."""
        index = self.index(operator, place)
        assert index is not None
        tensor = self.model.tensors[index]
        return self._values[index] if tensor.values is None else constant(tensor.values)

    def dequantized(
        self, stored: Any, scales: NDArray[Any], zeros: NDArray[Any], axis: int = 0
    ) -> Value:
        """Integers with one scale, or one along an axis, as floats."""
        parameters = _parameters(scales, zeros)
        return self.emit(op.dequantize(stored, *parameters, axis=axis))

    def integers(self, operator: TfliteOperator, place: int) -> tuple[int, ...]:
        """A constant input of whole numbers. Raises ModelError where it is computed."""
        tensor = self.tensor(operator, place)
        if tensor.values is None or tensor.dtype not in ("int32", "int64"):
            raise self.wrong(f"needs whole numbers that are constant, not '{tensor.name}'")
        return tuple(int(one) for one in tensor.values.reshape(-1))

    def taken(self, value: Value, numbers: Any, axis: int) -> Value:
        """Elements of an axis by their numbers."""
        return self.emit(op.take(value, constant(numbers, "int64"), axis, mode="clip"))

    def axis(self, number: int, rank: int) -> int:
        """An axis counted from either end. Raises ModelError where there is none."""
        if not -rank <= number < rank:
            raise self.wrong(f"has axis {number} of {rank}")
        return number % rank

    def output(self, operator: TfliteOperator, place: int = 0) -> TfliteTensor:
        """What the file says of an output. Raises ModelError where it is absent."""
        if place >= len(operator.outputs):
            raise self.wrong(f"has no output {place}")
        return self.model.tensors[operator.outputs[place]]

    def finish(self, operator: TfliteOperator, results: Value | Sequence[Value]) -> None:
        """Bind an operator's outputs, quantized where the file says so.

        Raises ModelError for results of another number or shape than the file's.
        """
        values = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(values) != len(operator.outputs):
            raise self.wrong(f"has {len(operator.outputs)} outputs and gives {len(values)}")
        for index, value in zip(operator.outputs, values, strict=True):
            tensor = self.model.tensors[index]
            shape = shape_of(value)
            if shape != tensor.shape:
                raise self.wrong(f"gives the shape {shape}, and its output is {tensor.shape}")
            self._values[index] = self._quantized(tensor, value)

    def _quantized(self, tensor: TfliteTensor, value: Value) -> Any:
        if tensor.dtype == "float32":
            return value
        if tensor.dtype in _COUNTS and not tensor.quantized and "int" in str(value.ty.dtype):
            return self.emit(op.astype(value, tensor.dtype))
        if tensor.dtype not in _INTEGERS or not tensor.quantized:
            raise self.wrong(f"gives '{tensor.name}' of {tensor.dtype} without a scale")
        self.layers.append(tensor.name)
        parameters = _parameters(tensor.scales, tensor.zero_points)
        call = op.quantize(value, *parameters, axis=0, out_dtype=tensor.dtype)
        return self.emit(call, tensor.name)

    def module(self) -> Any:
        """The finished module, which returns one tensor or a tuple.

        Its function is marked as one of channels that come last.
        """
        values = [self._values[index] for index in self.model.outputs]
        result = self._builder.normalize(values[0] if len(values) == 1 else relax.Tuple(values))
        returned = relax.Var("result", result.ty)
        block = relax.DataflowBlock([*self._bindings, relax.VarBinding(returned, result)])
        body = relax.SeqExpr([block], returned)
        function = relax.Function(self.parameters, body, ret_ty=result.ty)
        marked = function.with_attr("global_symbol", "main").with_attr(CHANNELS_LAST, True)
        return relax.transform.Normalize()(tvm.IRModule({"main": marked}))


def constant(values: Any, dtype: str | None = None) -> Any:
    """A Relax constant of this dtype."""
    array = np.ascontiguousarray(values)
    kind = dtype or array.dtype.newbyteorder("=").name
    return relax.const(array.astype(kind), kind)


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a Relax expression."""
    return tuple(int(extent) for extent in value.ty.shape)


def _parameter(model: TfliteModel, index: int) -> Any:
    tensor = model.tensors[index]
    return relax.Var(tensor.name, relax.TensorType(tensor.shape, tensor.dtype))


def _parameters(scales: NDArray[Any], zeros: NDArray[Any]) -> tuple[Any, Any]:
    """Scale and zero point, without axes where there is one."""
    shape = () if scales.size == 1 else scales.shape
    return (
        constant(scales.reshape(shape), "float32"),
        constant(zeros.reshape(shape), "int32"),
    )
