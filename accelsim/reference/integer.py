"""The integer reference: the golden that simulator and RTL must equal in every bit.

What comes in: a `QuantizedModel`. What goes out: a `Reference`, which runs the whole network or one
layer on TVM's own CPU code. It must not know the legalized module, the simulator or the RTL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import tvm
from tvm import relax

from accelsim.artifacts import I8, QuantizedModel
from accelsim.errors import InputError
from accelsim.reference import host as float_code
from accelsim.reference.boundary import (
    checked_input,
    dequantize_outputs,
    from_nhwc,
    quantize_floats,
    quantize_inputs,
)
from accelsim.reference.executable import FASTEST, machine_of
from accelsim.reference.flow import shape_of
from accelsim.reference.golden import GoldenSet
from accelsim.reference.graph import read_network
from accelsim.reference.kernels import Key, emit_kernel, key_of, shapes_of
from accelsim.reference.multipliers import ROUNDINGS
from accelsim.reference.network import Host, Network, ReferenceLayer
from accelsim.reference.operators import HOST, family
from accelsim.reference.site import site_of

Given = Mapping[str, np.ndarray]
NOTHING: Given = MappingProxyType({})
SMALL = 1 << 21  # products of a network that code of any quality computes at once


@dataclass(frozen=True, slots=True)
class Reference:
    """A network compiled layer by layer. All activations are int8, (n, h, w, c)."""

    network: Network
    machine: Any  # tvm relax VirtualMachine of the integer layers, None without one
    calls: Mapping[str, tuple[str, tuple[Any, ...]]]  # layer → (symbol, constant arguments)
    host: Mapping[str, Any] = field(default_factory=dict)  # layer of kind "host" → its float code
    prepared: Mapping[str, Any] = field(default_factory=dict)  # boundary tensor → its float code
    tail: Any = None  # the float operators at the end
    optimization: int = FASTEST  # LLVM's level with which it was compiled

    @property
    def layers(self) -> tuple[ReferenceLayer, ...]:
        """Layers in execution order."""
        return self.network.layers

    def run_layer(self, name: str, inputs: tuple[I8, ...], given: Given = NOTHING) -> I8:
        """One layer on given inputs. `InputError` on a wrong count, shape or dtype.

        A layer of kind "host" may also read inputs of the model, by name in `given`.
        """
        layer = self.network.layer(name)
        shapes = tuple(np.shape(value) for value in inputs)
        if shapes != layer.input_shapes or any(value.dtype != np.int8 for value in inputs):
            raise InputError(
                f"layer '{name}' takes int8 inputs of shapes {layer.input_shapes}, not "
                f"{shapes} of {[str(value.dtype) for value in inputs]}"
            )
        if name in self.host:
            arguments = self._arguments(layer.core, layer.inputs, inputs, given)
            (values,) = float_code.run(self.host[name], arguments)
            return quantize_floats(values, self.network.tensors[layer.output])
        symbol, constants = self.calls[name]
        tensors = [tvm.runtime.tensor(np.ascontiguousarray(value)) for value in inputs]
        return np.asarray(self.machine[symbol](*tensors, *constants).numpy(), dtype=np.int8)

    def run(self, inputs: Mapping[str, I8], given: Given = NOTHING) -> dict[str, I8]:
        """Every layer on the outputs of the ones before.

        `inputs` maps the tensors of `network.boundary` to int8 values (see `quantize_inputs`),
        `given` has the model's own inputs, for layers of kind "host" that read them. The result has
        the tensors of `inputs` too, and every layer's output under its tensor name.
        """
        values: dict[str, I8] = {}
        for tensor in self.network.boundary:
            if tensor not in inputs:
                raise InputError(f"the quantized input '{tensor}' is missing")
            values[tensor] = np.asarray(inputs[tensor])
        for layer in self.layers:
            arguments = tuple(values[name] for name in layer.inputs)
            values[layer.output] = self.run_layer(layer.name, arguments, given)
        return values

    def isolated(self, values: Mapping[str, I8], given: Given = NOTHING) -> GoldenSet:
        """Each layer's output on the given inputs, which the result of any run can provide."""
        outputs = {}
        for layer in self.layers:
            arguments = tuple(values[name] for name in layer.inputs)
            outputs[layer.output] = self.run_layer(layer.name, arguments, given)
        return GoldenSet("integer", "isolated", True, outputs)

    def accumulated(self, inputs: Mapping[str, I8], given: Given = NOTHING) -> GoldenSet:
        """The whole network as a golden set, boundary tensors left out."""
        values = self.run(inputs, given)
        outputs = {layer.output: values[layer.output] for layer in self.layers}
        return GoldenSet("integer", "accumulated", True, outputs)

    def quantize_inputs(self, inputs: Mapping[str, np.ndarray]) -> dict[str, I8]:
        """The model's inputs by name → int8 tensors by name."""
        result = quantize_inputs(self.network, inputs)
        for one in self.network.prepared:
            taken = zip(one.inputs, one.shapes, one.dtypes, strict=True)
            arguments = [checked_input(inputs, *each) for each in taken]
            (values,) = float_code.run(self.prepared[one.tensor], arguments)
            result[one.tensor] = quantize_floats(values, self.network.tensors[one.tensor])
        return result

    def dequantize_outputs(
        self, values: Mapping[str, I8], given: Given = NOTHING
    ) -> tuple[np.ndarray, ...]:
        """int8 tensors → the model's outputs, in its own layout and dtypes.

        `given` has the model's own inputs, for float operators at the end that read them.
        """
        core, names = self.network.tail, self.network.tail_inputs
        if core is None:
            return dequantize_outputs(self.network, values)
        taken = [values[name] for name in names]
        return float_code.run(self.tail, self._arguments(core, names, taken, given))

    def _arguments(
        self, core: Host, names: Sequence[str], values: Sequence[I8], given: Given
    ) -> list[np.ndarray]:
        """What float code takes, in the order of its parameters."""
        stored = iter(self._stored(names, values))
        parameters = core.module["main"].params
        return [
            next(stored)
            if name is None
            else checked_input(given, name, shape_of(parameter), str(parameter.ty.dtype))
            for name, parameter in zip(core.given, parameters, strict=True)
        ]

    def _stored(self, names: Sequence[str], values: Sequence[I8]) -> list[np.ndarray]:
        """Tensors as the QDQ module holds them."""
        return [
            from_nhwc(value, self.network.tensors[name])
            for name, value in zip(names, values, strict=True)
        ]


def build(
    quantized: QuantizedModel,
    *,
    rounding: str | None = None,
    optimization: int | None = None,
    host: Collection[str] = (),
) -> Reference:
    """Read the QDQ module and compile every distinct layer for the CPU.

    `optimization` is LLVM's level: 0 compiles several times faster and runs slower. None is 0 for
    a small network, which compiles longer than it runs, and else the highest.

    `rounding` takes the place of the model's own: "fp32" rounds each operation to float32;
    "qnnpack" is the fixed-point sum of PyTorch's kernel, and fp32 for scales with which that
    kernel is not defined; "tflite" and "onnxruntime" are these frameworks' own.

    `host` names layers that run on the host: they, and those that have no integer definition, are
    computed in floats by TVM's code of the QDQ module. `ModelError` names a layer whose integers
    would overflow, or that cannot be computed from quantized tensors.
    """
    rounding = quantized.rounding if rounding is None else rounding
    if rounding not in ROUNDINGS:
        raise InputError(f"rounding '{rounding}' is unknown: choose from {', '.join(ROUNDINGS)}")
    return build_network(read_network(quantized.qdq, host, rounding), rounding, optimization)


def build_network(
    network: Network, rounding: str = "fp32", optimization: int | None = None
) -> Reference:
    """The same from a network already read."""
    builder = relax.BlockBuilder()
    symbols: dict[Key, str] = {}
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for layer in network.layers:
        if layer.family == HOST:
            continue
        site = site_of(network, layer, rounding)
        kernel, shapes = family(layer.family).kernel(site), shapes_of(site)
        key = key_of(kernel, shapes)
        if key not in symbols:
            symbols[key] = f"{layer.family}_{len(symbols)}"
            emit_kernel(builder, symbols[key], kernel, shapes)
        constants = tuple(
            tvm.runtime.tensor(np.asarray(value, order="C")) for value in kernel.values.values()
        )
        calls[layer.name] = (symbols[key], constants)
    machine = None
    small = sum(layer.macs for layer in network.layers) < SMALL
    level = (0 if small else FASTEST) if optimization is None else optimization
    if symbols:
        machine = machine_of(builder.get(), level)
    cores = {x.name: x.core.module for x in network.layers if isinstance(x.core, Host)}
    modules = {("layer", name): module for name, module in cores.items()}
    modules |= {("tensor", one.tensor): one.module for one in network.prepared}
    if network.tail is not None:
        modules["tail", ""] = network.tail.module
    found = float_code.functions_of(modules)
    hosts = {name: function for (kind, name), function in found.items() if kind == "layer"}
    prepared = {name: function for (kind, name), function in found.items() if kind == "tensor"}
    tail = found.get(("tail", ""))
    return Reference(network, machine, calls, hosts, prepared, tail, level)
