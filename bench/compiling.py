"""Compile time: a quantized ResNet-18 to instructions, against TVM's own compile of the float one.

What comes in: a seed and a configuration. What goes out: seconds of both, and the whole network's
cycles. Importing and quantizing are left out on both sides.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

from accelsim.artifacts import Launch, Program
from accelsim.emit import launch_memory
from accelsim.simulate import Simulator
from accelsim.spec.config import Config


@dataclass(frozen=True, slots=True)
class CompileTimes:
    """Seconds of both compilers, and what the program is like."""

    accelsim_seconds: float
    tvm_seconds: float
    instructions: int
    cycles: int
    utilization: float
    regions: int

    @property
    def ratio(self) -> float:
        """Our time over TVM's."""
        return self.accelsim_seconds / self.tvm_seconds


def measure_compile(seed: int, config: Config) -> CompileTimes:
    """Compile the network both ways, and time it on the simulator."""
    import torch
    import tvm
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program

    from accelsim.codegen import compile_model
    from accelsim.quantize import quantize
    from bench.resnet import source_model

    source = source_model(seed)
    image = torch.from_numpy(source.example_inputs[0])
    with warnings.catch_warnings():  # PyTorch's own deprecations
        warnings.simplefilter("ignore")
        float_module = from_exported_program(torch.export.export(source.float_module, (image,)))
        quantized = quantize(source)
    began = time.perf_counter()
    compiled = compile_model(quantized, config)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    relax.build(float_module, target=tvm.target.Target("llvm"))
    theirs = time.perf_counter() - began
    cycles = sum(_cycles(program) for program in compiled.programs)
    macs = sum(layer.macs for program in compiled.programs for layer in program.layers)
    return CompileTimes(
        accelsim_seconds=ours,
        tvm_seconds=theirs,
        instructions=sum(len(program.words) for program in compiled.programs),
        cycles=cycles,
        utilization=macs / (config.lanes**2 * cycles),
        regions=len(compiled.programs),
    )


def _cycles(program: Program) -> int:
    simulator = Simulator(program.config, values=False, checks=False)
    return simulator.run(Launch(program, launch_memory(program, {}), observe=False)).cycles
