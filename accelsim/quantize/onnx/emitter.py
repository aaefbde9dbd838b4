"""Collects the bindings of a QDQ `main` while an ONNX graph is walked.

What comes in: Relax calls, node by node. What goes out: bindings, each with the node that it came
from. It must not know operators, nor how layers are named.

A tensor of the graph is one of

* `np.ndarray`: a constant;
* `Weight`: a dequantized integer constant;
* `Stored`: a quantized activation, which each consumer dequantizes for itself;
* `Lazy`: a dequantized activation, perhaps with its axes renamed since: emitted for each consumer;
* `relax.Var`: any other tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from accelsim.errors import ModelError
from accelsim.importer.onnx import OnnxModel, OnnxNode

op = relax.op
Array = NDArray[Any]
ACTIVATIONS = ("int8", "uint8")


@dataclass(frozen=True, slots=True)
class Levels:
    """Scale and zero point, one or one along `axis`, and the integers' dtype."""

    scale: Array  # float32, () or (n,)
    zero: Array  # int32, like `scale`
    dtype: str
    axis: int = 0

    def same(self, other: Levels) -> bool:
        """Whether equal real numbers have equal integers in both."""
        equal = np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)
        return equal and self.dtype == other.dtype


@dataclass(frozen=True, slots=True)
class Weight:
    """An integer constant with its levels."""

    values: Array
    levels: Levels


@dataclass(frozen=True, slots=True)
class Stored:
    """A quantized activation. `levels` is None where the graph does not say."""

    var: Any
    levels: Levels | None


@dataclass(frozen=True, slots=True)
class Lazy:
    """A tensor that is emitted anew for each consumer."""

    make: Callable[[], Any]
    node: OnnxNode


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding and the ONNX node that asked for it; None for dequantizes."""

    var: Any
    value: Any
    node: OnnxNode | None


class Emitter:
    """The state of one walk. Methods that fail raise ModelError naming the layer."""

    def __init__(self, model: OnnxModel) -> None:
        """Start with the model's constants."""
        self.model = model
        self.values: dict[str, Any] = dict(model.constants)
        self.bindings: list[Bound] = []
        self.parameters: list[Any] = []
        self.node: OnnxNode | None = None
        self._builder = relax.BlockBuilder()

    def fail(self, reason: str) -> ModelError:
        """An error about the node at hand."""
        assert self.node is not None
        return ModelError(
            f"layer '{self.node.name}' ({self.node.operator}) of {self.model.name} {reason}"
        )

    def parameter(self, name: str, shape: tuple[int, ...], dtype: str) -> Any:
        """An input of the model."""
        self.parameters.append(relax.Var(name, relax.TensorType(shape, dtype)))
        return self.parameters[-1]

    def emit(self, call: Any) -> Any:
        """Bind a call under the node at hand."""
        value = self._builder.normalize(call)
        var = relax.Var(f"lv{len(self.bindings)}", value.ty)
        dequantize = getattr(getattr(call, "op", None), "name", "") == "relax.dequantize"
        self.bindings.append(Bound(var, value, None if dequantize else self.node))
        return var

    def value(self, name: str) -> Any:
        """What a tensor's name stands for."""
        if name not in self.values:
            raise self.fail(f"reads '{name}', which an operator without a form gives")
        return self.values[name]

    def real(self, name: str) -> Any:
        """A tensor as an operand; quantized ones are dequantized for this consumer alone."""
        return self.operand(self.value(name))

    def operand(self, value: Any) -> Any:
        """The same of a value."""
        if isinstance(value, Lazy):
            before, self.node = self.node, value.node
            made = value.make()
            self.node = before
            return made
        if isinstance(value, Stored):
            return self.dequantize(value.var, self.levels(value))
        if isinstance(value, Weight):
            return self.dequantize(constant(value.values), value.levels)
        if isinstance(value, np.ndarray):
            return constant(value)
        return value

    def levels(self, value: Stored) -> Levels:
        """Those of an activation."""
        if value.levels is None:
            raise self.fail("reads an integer input whose scale no operator gives")
        return value.levels

    def dequantize(self, value: Any, levels: Levels) -> Any:
        """Integers → real numbers."""
        scale, zero = constant(levels.scale), constant(levels.zero)
        return self.emit(op.dequantize(value, scale, zero, axis=levels.axis))

    def quantize(self, value: Any, levels: Levels) -> Stored:
        """Real numbers → an activation."""
        if levels.dtype not in ACTIVATIONS:
            raise self.fail(f"quantizes to {levels.dtype}; accelsim runs int8 and uint8")
        if levels.scale.size != 1:
            raise self.fail("quantizes an activation with a scale for each channel")
        scale, zero = (constant(one.reshape(())) for one in (levels.scale, levels.zero))
        call = op.quantize(value, scale, zero, axis=0, out_dtype=levels.dtype)
        one = replace(levels, scale=levels.scale.reshape(()), zero=levels.zero.reshape(()))
        return Stored(self.emit(call), one)

    def known(self, name: str) -> Array | None:
        """A constant's values, or None; an input that is left out is None, too."""
        value = self.values.get(name) if name else None
        return value if isinstance(value, np.ndarray) else None

    def numbers(self, name: str, what: str) -> Array:
        """A constant that must be there."""
        value = self.known(name)
        if value is None:
            raise self.fail(f"has {what} that are known only at run time")
        return value


def constant(value: Array) -> Any:
    """A Relax constant."""
    return relax.const(np.ascontiguousarray(value) if value.ndim else value, str(value.dtype))


def number(value: float) -> Any:
    """A float32 Relax constant without axes."""
    return relax.const(float(value), "float32")


def shape_of(var: Any) -> tuple[int, ...]:
    """The static shape of an emitted tensor."""
    return tuple(int(extent) for extent in var.ty.shape)


def dtype_of(var: Any) -> str:
    """The dtype of an emitted tensor."""
    return str(var.ty.dtype)


def ints(values: Sequence[Any] | Array) -> list[int]:
    """Whole numbers of an attribute or a constant."""
    return [int(value) for value in np.asarray(values).reshape(-1)]
