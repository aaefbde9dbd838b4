"""The self-test: one planted bug of the simulator must be found, or the run proves nothing."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Backend, Launch, Program, RunResult
from accelsim.compare import compare_tensors, first_diverging_record, locate
from accelsim.emit import launch_memory, read_tensor
from accelsim.errors import ProgramError
from accelsim.simulate import Simulator
from accelsim.simulate.bugs import BUGS
from accelsim.verify.goldens import BatchGoldens


def self_test(
    program: Program, batch: BatchGoldens, honest: RunResult | None, seed: int
) -> dict[str, str]:
    """Plant a bug drawn by seed among those that can change this program; say who caught it.

    Returns {"bug": …, "caught": …}; "caught" is empty if nothing did, which fails the run.
    """
    names = sorted(BUGS)
    for name in np.random.default_rng(seed).permutation(names):
        where = _caught(program, batch, honest, str(name))
        if where is not None:
            return {"bug": str(name), "caught": where}
    return {"bug": ", ".join(names), "caught": ""}


def _caught(
    program: Program, batch: BatchGoldens, honest: RunResult | None, name: str
) -> str | None:
    backend: Backend = Simulator(program.config, bug=name).run
    memory = launch_memory(program, {n: batch.values[n] for n in program.inputs})
    try:
        result = backend(Launch(program, memory))
    except ProgramError as error:
        return f"the simulator's own check: {error}"
    if result.error_code:
        return f"error code {result.error_code} at instruction {result.error_index}"
    for layer in program.layers:
        comparison = compare_tensors(
            read_tensor(program, result.dram, layer.output),
            batch.values[layer.output],
            backend="sim",
            source="integer",
            mode="accumulated",
            gate=True,
        )
        if comparison.mismatches:
            runs = [honest, result] if honest else []
            first = locate(comparison, program, layer.output, runs).first
            at = f", instruction {first.instruction}" if first else ""
            return f"layer {layer.name}: {comparison.mismatches} elements differ{at}"
    if honest is not None:
        index = first_diverging_record(honest.records, result.records)
        if index is not None:
            return f"digest of instruction {index}"
    return None
