"""The cases of one operator, compiled together: one module a purpose, one branch a case.

What comes in: cases. What goes out: outputs of TVM's CPU code and programs of the NPU, by case.
Everything is compiled at its first use; what does not depend on how cases round is compiled once
for all roundings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray

from accelsim.artifacts import I8, Program, QuantizedModel
from accelsim.codegen.placement import place
from accelsim.emit import compile_region
from accelsim.errors import InputError, ModelError
from accelsim.legalize import legalize
from accelsim.ops.case import Case
from accelsim.ops.modules import float_module, operands, product_module, qdq_module
from accelsim.quantize import layer_members
from accelsim.reference import Reference, build
from accelsim.reference.boundary import from_nhwc, to_nhwc
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from accelsim.spec.config import Config

TORCH_ROUNDING = "qnnpack"  # the one that PyTorch's kernels can equal


def _model(cases: Sequence[Case], rounding: str) -> QuantizedModel:
    """Cases as one QDQ module."""
    return QuantizedModel(
        name="ops",
        exported=None,
        qdq=qdq_module(cases),
        torch_int8=None,
        rounding=rounding,
        layer_names=tuple(case.name for case in cases),
        input_names=(),
        input_shapes=(),
        input_dtypes=(),
    )


class Kernels:
    """What frameworks' kernels are compared with, for cases of all roundings."""

    def __init__(self, cases: Sequence[Case]) -> None:
        """Keep the cases; nothing is compiled yet."""
        self.cases = {case.name: case for case in cases}

    @cached_property
    def reference(self) -> Reference:
        """The reference with the rounding of PyTorch's quantized kernels."""
        return build(_model(list(self.cases.values()), TORCH_ROUNDING), optimization=UNOPTIMIZED)

    @cached_property
    def floats(self) -> dict[str, NDArray[Any]]:
        """TVM's float32 operators on the dequantized inputs."""
        inputs = [one.reals for case in self.cases.values() for one in case.inputs]
        results = _run(float_module(list(self.cases.values())), inputs)
        return dict(zip(self.cases, results, strict=True))

    @cached_property
    def products(self) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """int32 sums of products: computed directly, and as four raw products."""
        cases = list(self.cases.values())
        inputs = [stored for case in cases for stored, _ in operands(case)]
        results = _run(product_module(cases), inputs)
        return dict(zip(self.cases, zip(results[::2], results[1::2], strict=True), strict=True))


class Batch:
    """Cases by name, all of one rounding. `reference` is the integer golden of other stages."""

    def __init__(self, cases: Sequence[Case], kernels: Kernels | None = None) -> None:
        """Keep the cases; nothing is compiled yet. `kernels` may have cases of other batches."""
        self.cases = {case.name: case for case in cases}
        self.kernels = Kernels(cases) if kernels is None else kernels
        roundings = {case.spec.rounding for case in cases}
        if len(roundings) > 1:
            raise InputError(f"cases of one batch round in one way, not as {sorted(roundings)}")
        self.rounding = next(iter(roundings), TORCH_ROUNDING)
        self._programs: dict[str, dict[str, Program]] = {}
        self._reasons: dict[str, dict[str, str]] = {}

    @cached_property
    def quantized(self) -> QuantizedModel:
        """All cases as one QDQ module."""
        return _model(list(self.cases.values()), self.rounding)

    @cached_property
    def reference(self) -> Reference:
        """The integer reference on TVM's CPU code."""
        if self.rounding == TORCH_ROUNDING:
            return self.kernels.reference
        return build(self.quantized, optimization=UNOPTIMIZED)

    @property
    def torch_reference(self) -> Reference:
        """The reference with the rounding of PyTorch's quantized kernels."""
        return self.kernels.reference

    def inputs(self, case: Case) -> tuple[I8, ...]:
        """A case's inputs as int8 (n, h, w, c)."""
        return tuple(
            self.nhwc(case.input_name(side), one.values) for side, one in enumerate(case.inputs)
        )

    def golden(self, case: Case) -> I8:
        """The integer reference's output, int8 (n, h, w, c)."""
        return self.reference.run_layer(case.name, self.inputs(case))

    def nhwc(self, tensor: str, stored: NDArray[Any]) -> I8:
        """A tensor's stored values in PyTorch's layout → int8 (n, h, w, c)."""
        return to_nhwc(stored, self.reference.network.tensors[tensor])

    def stored(self, tensor: str, values: I8) -> NDArray[Any]:
        """The inverse of `nhwc`."""
        return from_nhwc(values, self.reference.network.tensors[tensor])

    @cached_property
    def _legalized_outputs(self) -> dict[str, NDArray[Any]]:
        inputs = [
            one.reals if case.floats is None else case.floats
            for case in self.cases.values()
            for one in case.inputs
        ]
        results = _run(legalize(self.quantized).module, inputs)
        return dict(zip(self.cases, results, strict=True))

    def float_output(self, case: Case) -> NDArray[Any]:
        """TVM's float32 operator on the dequantized inputs."""
        return self.kernels.floats[case.name]

    def products(self, case: Case) -> tuple[NDArray[Any], NDArray[Any]]:
        """int32 sums of a product: computed directly, and as four raw products."""
        return self.kernels.products[case.name]

    def legalized_output(self, case: Case) -> NDArray[Any]:
        """The compiler's integer form on TVM's CPU code, from floats to floats."""
        return self._legalized_outputs[case.name]

    def legalized_stored(self, case: Case) -> NDArray[Any]:
        """The same as stored integers in PyTorch's layout: (q - zero)·scale inverted."""
        steps = np.rint(self.legalized_output(case).astype(np.float64) / float(case.scale))
        return np.asarray((steps + case.zero).astype(case.dtype))

    def quantized_input(self, case: Case) -> NDArray[Any]:
        """What the reference's boundary stores of a case's float input, in PyTorch's layout."""
        network = self.reference.network
        assert case.floats is not None
        floats = {name: np.zeros(network.tensors[t].shape, "f4") for name, t in network.inputs}
        mine = {tensor: name for name, tensor in network.inputs}
        floats[mine[case.input_name(0)]] = case.floats
        made = self.reference.quantize_inputs(floats)[case.input_name(0)]
        return self.stored(case.input_name(0), made)

    def program(self, case: Case, config: Config) -> tuple[Program, tuple[str, ...]]:
        """The NPU's program of one case and the names of its input tensors, in order.

        Raises ModelError where the compiler left the case to the host.
        """
        if config.name not in self._programs:
            self._programs[config.name] = self._place(config)
        program = self._programs[config.name].get(case.name)
        if program is None:
            reason = self._reasons[config.name].get(case.name, "nothing of it is computed")
            raise ModelError(f"{case.name} was left to the host: {reason}")
        return program, program.layers[0].inputs

    def _place(self, config: Config) -> dict[str, Program]:
        members = layer_members(self.quantized.qdq)
        placed = place(self.quantized, config, members, compile_region)
        self._reasons[config.name] = {op.name: op.reason for op in placed.legalized.host_ops}
        return {program.layers[-1].name: program for program in placed.programs}


def _run(module: Any, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Results of a module's `main` on TVM's CPU code."""
    machine = machine_of(module, UNOPTIMIZED)
    results = machine["main"](*[tvm.runtime.tensor(np.ascontiguousarray(v)) for v in inputs])
    return [np.asarray(value.numpy()) for value in results]
