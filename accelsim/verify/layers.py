"""Layer by layer: every backend against every golden, on its own and in the whole network.

What comes in: a compiled network, goldens of one batch, open backends. What goes out: one
`LayerReport` a layer. Isolated mode runs the layer's own instructions on golden inputs; accumulated
mode reads what the shipped library left in DRAM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelsim.artifacts import (
    I8,
    Backend,
    Comparison,
    Launch,
    LayerRecord,
    LayerReport,
    Program,
    RunResult,
)
from accelsim.codegen import CompiledModel, set_backend
from accelsim.compare import compare_tensors, locate, missing
from accelsim.emit import isolate, launch_memory, read_tensor
from accelsim.errors import ProgramError
from accelsim.reference import GoldenSet
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.library import Library
from accelsim.verify.options import Progress

Runs = Mapping[str, Mapping[str, RunResult]]  # program symbol → backend → result


@dataclass(frozen=True, slots=True)
class LayerCheck:
    """What all layers of one batch are checked with."""

    compiled: CompiledModel
    goldens: Goldens
    batch: BatchGoldens
    backends: Mapping[str, Backend]


def run_whole(
    library: Library, backends: Mapping[str, Backend], inputs: Sequence[I8], progress: Progress
) -> tuple[Runs, dict[str, tuple[I8, ...]]]:
    """The shipped library once on every backend: results by program, and outputs by backend."""
    runs: dict[str, dict[str, RunResult]] = {}
    outputs: dict[str, tuple[I8, ...]] = {}
    for name, backend in backends.items():
        progress(f"running the whole network on {name}")

        def observe(launch: Launch, result: RunResult, name: str = name) -> None:
            runs.setdefault(launch.program.symbol, {})[name] = result

        set_backend(backend, observe=True, observer=observe)
        outputs[name] = library.run(inputs)
    return runs, outputs


def check_layer(
    check: LayerCheck, program: Program, number: int, whole: Mapping[str, RunResult]
) -> LayerReport:
    """All comparisons of one layer. `whole` are the accumulated runs of its program."""
    layer = program.layers[number]
    comparisons, cycles = _isolated(check, program, number)
    comparisons += _accumulated(check.batch, program, layer, whole)
    return LayerReport(
        name=layer.name,
        op=layer.op,
        members=layer.members,
        placement="npu",
        elements=layer.elements,
        macs=layer.macs,
        tiles=layer.tiles,
        compare=tuple(comparisons),
        cycles=cycles,
        facts=layer.facts,
    )


def host_layers(compiled: CompiledModel) -> list[LayerReport]:
    """A report for each operator that stayed on the host, conversions at its edge excepted."""
    return [
        LayerReport(op.name, op.op, (op.name,), "host", 0, 0, 0, (), {}, reason=op.reason)
        for op in compiled.host_ops
        if not op.boundary
    ]


def _isolated(
    check: LayerCheck, program: Program, number: int
) -> tuple[list[Comparison], dict[str, int]]:
    layer = program.layers[number]
    values = check.batch.values
    cut, presets = isolate(program, number)
    memory = launch_memory(cut, {name: values[name] for name in layer.inputs})
    results = {
        name: backend(Launch(cut, memory, presets)) for name, backend in check.backends.items()
    }
    torch = check.goldens.torch_alone(layer, check.compiled.qdq_layers[layer.name], values)
    comparisons = []
    for name, result in results.items():
        refuse_error(result, layer)
        actual = read_tensor(cut, result.dram, layer.output)
        runs = list(results.values())
        for source, golden in (("integer", values[layer.output]), ("torch", torch)):
            comparisons.append(
                _one(actual, golden, name, source, "isolated", True, (cut, layer, runs))
            )
    return comparisons, {name: result.cycles for name, result in results.items()}


def _accumulated(
    batch: BatchGoldens, program: Program, layer: LayerRecord, whole: Mapping[str, RunResult]
) -> list[Comparison]:
    comparisons = []
    runs = list(whole.values())
    goldens: tuple[tuple[GoldenSet, bool], ...] = (
        (batch.integer, True),
        (batch.torch, False),
        (batch.tvm, False),
    )
    for name, result in whole.items():
        actual = read_tensor(program, result.dram, layer.output)
        for golden, gate in goldens:
            tensor = golden.tensors.get(layer.output)
            where = (program, layer, runs)
            comparisons.append(
                _one(actual, tensor, name, golden.source, "accumulated", gate, where)
            )
    return comparisons


def _one(
    actual: I8,
    golden: I8 | None,
    backend: str,
    source: str,
    mode: str,
    gate: bool,
    where: tuple[Program, LayerRecord, list[RunResult]],
) -> Comparison:
    program, layer, runs = where
    if golden is None:
        return missing(backend, source, mode, gate, f"{source} has no golden of {layer.output}")
    comparison = compare_tensors(
        actual, golden, backend=backend, source=source, mode=mode, gate=gate
    )
    return locate(comparison, program, layer.output, runs)


def refuse_error(result: RunResult, layer: LayerRecord) -> None:
    """Raise ProgramError where a layer's program stopped with an error code."""
    if result.error_code:
        raise ProgramError(
            f"layer {layer.name} stopped on {result.backend} with error code "
            f"{result.error_code} at its instruction {result.error_index}"
        )
