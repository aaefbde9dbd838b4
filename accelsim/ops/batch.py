"""The cases of one operator, compiled together: one module a purpose, one branch a case.

What comes in: cases. What goes out: outputs of TVM's CPU code and programs of the NPU, by case.
Everything is compiled at its first use.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from accelsim.artifacts import I8, Program, QuantizedModel
from accelsim.codegen.placement import place
from accelsim.emit import compile_region
from accelsim.errors import ModelError
from accelsim.legalize import legalize
from accelsim.ops.case import Case
from accelsim.ops.modules import float_module, qdq_module
from accelsim.quantize import layer_members
from accelsim.reference import Reference, build
from accelsim.spec.config import Config

UNOPTIMIZED = {"kind": "llvm", "opt-level": 0}  # small cases: compiling costs, running does not


class Batch:
    """Cases by name. `reference` is the integer golden of every other stage."""

    def __init__(self, cases: Sequence[Case]) -> None:
        """Keep the cases; nothing is compiled yet."""
        self.cases = {case.name: case for case in cases}
        self._programs: dict[str, dict[str, Program]] = {}

    @cached_property
    def quantized(self) -> QuantizedModel:
        """All cases as one QDQ module."""
        cases = list(self.cases.values())
        return QuantizedModel(
            name="ops",
            exported=None,
            qdq=qdq_module(cases),
            torch_int8=None,
            rounding="qnnpack",  # the kernel that the integer stages are held against
            layer_names=tuple(self.cases),
            input_names=(),
            input_shapes=(),
            input_dtypes=(),
        )

    @cached_property
    def reference(self) -> Reference:
        """The integer reference on TVM's CPU code."""
        return build(self.quantized, optimization=0)

    def inputs(self, case: Case) -> tuple[I8, ...]:
        """A case's inputs as int8 (n, h, w, c)."""
        return tuple(nhwc(one.values) for one in case.inputs)

    def golden(self, case: Case) -> I8:
        """The integer reference's output, int8 (n, h, w, c)."""
        return self.reference.run_layer(case.name, self.inputs(case))

    @cached_property
    def _float_outputs(self) -> dict[str, NDArray[Any]]:
        return self._run(float_module(list(self.cases.values())), reals=True)

    @cached_property
    def _legalized_outputs(self) -> dict[str, NDArray[Any]]:
        return self._run(legalize(self.quantized).module, reals=False)

    def float_output(self, case: Case) -> NDArray[Any]:
        """TVM's float32 operator on the dequantized inputs."""
        return self._float_outputs[case.name]

    def legalized_output(self, case: Case) -> NDArray[Any]:
        """The compiler's integer form on TVM's CPU code, from floats to floats."""
        return self._legalized_outputs[case.name]

    def _run(self, module: Any, reals: bool) -> dict[str, NDArray[Any]]:
        executable = relax.build(module, tvm.target.Target(UNOPTIMIZED))
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "cases.so"
            executable.export_library(str(library))  # far faster than TVM's just-in-time linker
            loaded = tvm.runtime.load_module(str(library))
        machine = relax.VirtualMachine(loaded, tvm.cpu())
        arguments = [
            one.reals if reals or case.floats is None else case.floats
            for case in self.cases.values()
            for one in case.inputs
        ]
        results = machine["main"](*[tvm.runtime.tensor(value) for value in arguments])
        return {
            name: np.asarray(value.numpy()) for name, value in zip(self.cases, results, strict=True)
        }

    def program(self, case: Case, config: Config) -> tuple[Program, tuple[str, ...]]:
        """The NPU's program of one case and the names of its input tensors, in order.

        Raises ModelError where the compiler left the case to the host.
        """
        if config.name not in self._programs:
            self._programs[config.name] = self._place(config)
        program = self._programs[config.name].get(case.name)
        if program is None:
            reasons = {op.name: op.reason for op in legalize(self.quantized).host_ops}
            raise ModelError(
                f"{case.name} was left to the host: {reasons.get(case.name, 'no tiling fits')}"
            )
        (layer,) = program.layers
        return program, layer.inputs

    def _place(self, config: Config) -> dict[str, Program]:
        members = layer_members(self.quantized.qdq)
        placed = place(self.quantized, config, members, compile_region)
        return {program.layers[-1].name: program for program in placed.programs}


def nhwc(values: NDArray[np.uint8]) -> I8:
    """Stored uint8 in PyTorch's layout → int8 (n, h, w, c)."""
    shifted = (values.astype(np.int16) - 128).astype(np.int8)
    if shifted.ndim == 2:
        return shifted.reshape(shifted.shape[0], 1, 1, shifted.shape[1])
    return np.ascontiguousarray(shifted.transpose(0, 2, 3, 1))
