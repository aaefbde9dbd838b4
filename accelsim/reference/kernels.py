"""Exact integer layers as Relax functions for TVM's own CPU code: what all of them share.

What comes in: a `Kernel` of an operator module. What goes out: a function in a `BlockBuilder`. It
must not know operators, or the simulator's or the specification's arithmetic: every rounding is
written anew in this room, and tests tie the two.

All values (weights, zero points, multipliers) are run-time arguments, so that layers of one
geometry share one function. A float product and the sum that reads it are separate loop nests with
memory between them, so that no processor can fuse the two into one rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te

from accelsim.artifacts import Shape4
from accelsim.quantize.layouts import nhwc_order, nhwc_shape
from accelsim.reference.network import ReferenceLayer, Shape
from accelsim.reference.scaling import MODES, Scaling
from accelsim.reference.site import Site

op = relax.op

Values = Mapping[str, Any]
Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a layer is computed: an emission and the values of its parameters.

    `emit` takes an `Emitter`, the int8 (n, h, w, c) activations and the parameters as Relax
    variables by name, and returns int8 in the core's logical shape. Whatever it depends on beyond
    the shapes of the layer stands in `geometry`: layers that agree in both share one function.
    """

    emit: Callable[[Emitter, list[Any], Values], Any]
    values: Mapping[str, np.ndarray]  # parameter → value, of the dtype in which it is passed
    geometry: Hashable = None


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of a layer: activations in memory, and the logical ones of its core."""

    inputs: tuple[Shape4, ...]
    logical: tuple[Shape, ...]  # of the input tensors
    core: tuple[Shape, ...]  # of the inputs as the core sees them
    core_output: Shape
    output: Shape  # logical
    axes: tuple[int, ...]  # channel axes of the input tensors
    axis: int  # channel axis of the output tensor

    @property
    def core_axis(self) -> int:
        """Channel axis of the core's output; a core that is reshaped afterwards has axis 1."""
        return self.axis if self.core_output == self.output else 1


def shapes_of(site: Site) -> Shapes:
    """Shapes of a layer."""
    layer: ReferenceLayer = site.layer
    return Shapes(
        inputs=layer.input_shapes,
        logical=tuple(tensor.shape for tensor in site.inputs),
        core=layer.core_shapes,
        core_output=layer.core_output_shape,
        output=site.output.shape,
        axes=tuple(tensor.axis for tensor in site.inputs),
        axis=site.output.axis,
    )


class Emitter:
    """Emits into one Relax function; methods name steps that several kernels share."""

    def __init__(self, builder: Any, shapes: Shapes, geometry: Any) -> None:
        self.builder = builder
        self.shapes = shapes
        self.geometry = geometry

    def __call__(self, expression: Any) -> Any:
        return self.builder.emit(expression)

    def compute(self, shape: Shape, body: Callable[..., Any], *operands: Any) -> Any:
        """One stored loop nest: `body(tensors, indices)` for every element of `shape`."""

        def nest(*tensors: Any) -> Any:
            return te.compute(shape, lambda *index: body(tensors, index))

        return self.builder.emit_te(nest, *operands)

    def load(self, value: Any, side: int = 0) -> Any:
        """int8 (n, h, w, c) → int8 in the logical shape that the core sees."""
        logical, shape = self.shapes.logical[side], self.shapes.core[side]
        order = nhwc_order(len(logical), self.shapes.axes[side])
        stored = tuple(logical[index] for index in order)
        if stored != self.shapes.inputs[side]:
            value = self(op.reshape(value, stored))
        if order != sorted(order):
            value = self(op.permute_dims(value, [order.index(i) for i in range(len(order))]))
        return value if shape == logical else self(op.reshape(value, shape))

    def centred(self, value: Any, zero_point: Any, side: int = 0, dtype: str = "int16") -> Any:
        """q - zero point in the logical shape, exact: at most 9 bits."""
        shape = self.shapes.core[side]
        return self.compute(
            shape, lambda t, i: t[0][i].astype(dtype) - t[1][()], self.load(value, side), zero_point
        )

    def requantized(self, accumulator: Any, p: Values, mode: str) -> Any:
        """(int32 + bias) scaled by the parameters of a `Scaling`, plus zero point, clamped to int8.

        `bias` and the parameters are one a channel (axis 1 of the core's shape) or one for all.
        """
        names = Scaling.names(mode)

        def body(t: Any, i: Any) -> Any:
            total, bias, zero_point, low, high, *scaling = t

            def of_channel(one: Any) -> Any:
                return one[i[self.shapes.core_axis] if int(one.shape[0]) > 1 else 0]

            scaled = MODES[mode](total[i] + of_channel(bias), *map(of_channel, scaling))
            return finished(scaled, zero_point, low, high)

        ends = (p[name] for name in ("bias", "zero_point", "low", "high", *names))
        return self.compute(self.shapes.core_output, body, accumulator, *ends)

    def clamped(self, value: Any, p: Values) -> Any:
        """Limits on an integer that is already in output steps."""
        return self.compute(
            self.shapes.core_output,
            lambda t, i: te.min(te.max(t[0][i], t[1][()]), t[2][()]).astype("int8"),
            value,
            p["low"],
            p["high"],
        )

    def store(self, value: Any) -> Any:
        """int8 in the core's logical shape → int8 (n, h, w, c)."""
        logical = self.shapes.output
        if logical != self.shapes.core_output:
            value = self(op.reshape(value, logical))
        order = nhwc_order(len(logical), self.shapes.axis)
        if order != sorted(order):
            value = self(op.permute_dims(value, order))
        stored = nhwc_shape(logical, self.shapes.axis)
        return (
            value
            if stored == logical and order == sorted(order)
            else self(op.reshape(value, stored))
        )


def finished(scaled: Any, zero_point: Any, low: Any, high: Any) -> Any:
    """Steps, an integer in int32, int64 or float32, plus zero point, within int8 limits.

    They are clamped before the zero point is added, so that nothing overflows.
    """
    lowest, highest = ((end[()] - zero_point[()]).astype(scaled.ty.dtype) for end in (low, high))
    steps = te.min(te.max(scaled, lowest), highest)
    return (steps.astype("int32") + zero_point[()]).astype("int8")


def key_of(kernel: Kernel, shapes: Shapes) -> Key:
    """What a compiled function depends on."""
    parameters = tuple((n, v.shape, str(v.dtype)) for n, v in kernel.values.items())
    return (kernel.emit, kernel.geometry, shapes, parameters)


def emit_kernel(builder: Any, symbol: str, kernel: Kernel, shapes: Shapes) -> None:
    """Add one kernel's function to a module under construction."""
    activations = [
        relax.Var(f"x{side}", relax.TensorType(shape, "int8"))
        for side, shape in enumerate(shapes.inputs)
    ]
    values = {
        name: relax.Var(name, relax.TensorType(value.shape, str(value.dtype)))
        for name, value in kernel.values.items()
    }
    emit = Emitter(builder, shapes, kernel.geometry)
    with builder.function(symbol, [*activations, *values.values()]):
        builder.emit_func_output(emit.store(kernel.emit(emit, activations, values)))
