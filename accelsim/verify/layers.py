"""Layer by layer: every backend against every golden, on its own and in the whole network.

What comes in: a compiled network, goldens of one batch, open backends. What goes out: one
`LayerReport` a layer. Isolated mode runs the layer's own instructions on golden inputs; accumulated
mode reads what the shipped library left in DRAM. A backend that stops or breaks a rule of its own
has no result: its comparisons are missing, and say why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

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
from accelsim.compare import Evidence, compare_tensors, locate, missing, stopped, unfinished
from accelsim.emit import isolate, launch_memory, read_tensor
from accelsim.errors import ProgramError, RtlError
from accelsim.reference import torch_cause
from accelsim.verify.goldens import BatchGoldens, Goldens
from accelsim.verify.library import Library
from accelsim.verify.options import Progress

BROKEN = (ProgramError, RtlError)  # what a wrong backend or program raises in place of a result
Outcome = RunResult | str  # a result, or why there is none


@dataclass(frozen=True, slots=True)
class LayerCheck:
    """What all layers of one batch are checked with."""

    compiled: CompiledModel
    goldens: Goldens
    batch: BatchGoldens
    backends: Mapping[str, Backend]

    def without_rtl(self) -> LayerCheck:
        """The same on the other backends."""
        others = {name: one for name, one in self.backends.items() if name != "rtl"}
        return replace(self, backends=others)


@dataclass(slots=True)
class Whole:
    """The shipped library run once on several backends."""

    backends: tuple[str, ...] = ()  # those that it was run on
    runs: dict[str, dict[str, RunResult]] = field(default_factory=dict)  # symbol → backend → result
    failures: dict[str, str] = field(default_factory=dict)  # backend → why it did not finish
    outputs: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)  # by backend

    def outcome(self, program: Program, backend: str) -> Outcome:
        """What a backend did with one program of the network."""
        result = self.runs.get(program.symbol, {}).get(backend)
        if result is None:
            return self.failures.get(backend, f"{backend} did not reach {program.symbol}")
        return stopped(program, result) if result.error_code else result

    def result(self, program: Program, names: Sequence[str]) -> RunResult | None:
        """The first result without an error among those of the named backends."""
        outcomes = (self.outcome(program, name) for name in names)
        return next((one for one in outcomes if isinstance(one, RunResult)), None)


def run_whole(
    library: Library,
    backends: Mapping[str, Backend],
    inputs: Sequence[np.ndarray],
    progress: Progress,
) -> Whole:
    """Run the shipped library on every backend; one that fails does not stop the others."""
    whole = Whole(tuple(backends))
    for name, backend in backends.items():
        progress(f"running the whole network on {name}")

        def observe(launch: Launch, result: RunResult, name: str = name) -> None:
            whole.runs.setdefault(launch.program.symbol, {})[name] = result

        where: list[str] = []  # exceptions come through TVM without their attributes

        def launch(
            given: Launch, backend: Backend = backend, where: list[str] = where
        ) -> RunResult:
            try:
                return backend(given)
            except BROKEN as error:
                done = whole.runs.get(given.program.symbol, {}).values()
                where.append(unfinished(given.program, error, other=next(iter(done), None)))
                raise

        set_backend(launch, observe=True, observer=observe)
        try:
            whole.outputs[name] = library.run(inputs)
        except BROKEN as error:
            place = "".join(where[-1:])
            whole.failures[name] = f"{name} did not finish the whole network: {error}{place}"
    return whole


def check_layer(check: LayerCheck, program: Program, number: int, whole: Whole) -> LayerReport:
    """All comparisons of one layer."""
    layer = program.layers[number]
    comparisons, cycles = _isolated(check, program, number)
    comparisons += _accumulated(check, program, layer, whole)
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
    try:
        cut, presets = isolate(program, number)
    except ProgramError as error:
        return [
            missing(name, source, "isolated", True, str(error))
            for name in check.backends
            for source in ("integer", "framework")
        ], {}
    numbers = layer.instructions
    memory = launch_memory(cut, {name: values[name] for name in layer.inputs})
    outcomes: dict[str, Outcome] = {}
    for name, backend in check.backends.items():
        try:
            result = backend(Launch(cut, memory, presets))
            outcomes[name] = stopped(cut, result, numbers) if result.error_code else result
        except BROKEN as error:
            other = next((one for one in outcomes.values() if isinstance(one, RunResult)), None)
            where = unfinished(cut, error, numbers, other)
            outcomes[name] = f"{name} did not finish the layer: {error}{where}"
    exact = values[layer.output]
    comparisons = _against(cut, layer, outcomes, exact, "integer", "isolated", True, numbers)
    own = check.goldens.framework_alone(layer, check.compiled.qdq_layers[layer.name], values)
    found = _against(cut, layer, outcomes, own, "framework", "isolated", True, numbers)
    if own is None:
        found = [replace(one, cause=_uncovered(check, layer) or one.cause) for one in found]
    elif not np.array_equal(own, exact):
        found = [_with_torch_cause(check, layer, own, one) for one in found]
        found = [_within_bound(check, layer, own, one) for one in found]
    comparisons += found
    cycles = {name: one.cycles for name, one in outcomes.items() if isinstance(one, RunResult)}
    return comparisons, cycles


def _uncovered(check: LayerCheck, layer: LayerRecord) -> str | None:
    """Why the framework has no golden of a layer, where it says so."""
    network, reasons = check.goldens.reference.network, check.goldens.framework.missing()
    for name in check.compiled.qdq_layers[layer.name]:
        output = network.layer(name).output
        if output in reasons:
            return (
                f"layer {name} has no golden of {check.goldens.framework.source}: "
                + (reasons[output])
            )
    return None


def _with_torch_cause(
    check: LayerCheck, layer: LayerRecord, own: I8, comparison: Comparison
) -> Comparison:
    """A difference from PyTorch with its cause where one explains every element."""
    names = check.compiled.qdq_layers[layer.name]
    torch = check.goldens.framework.source == "torch"
    if not torch or comparison.status != "different" or len(names) != 1:
        return comparison
    inputs = tuple(check.batch.values[name] for name in layer.inputs)
    cause = torch_cause(check.goldens.reference, names[0], inputs, own)
    return replace(comparison, cause=cause or comparison.cause)


def _within_bound(
    check: LayerCheck, layer: LayerRecord, own: I8, comparison: Comparison
) -> Comparison:
    """A difference from the framework that an operator with integers of its own may have."""
    names = check.compiled.qdq_layers[layer.name]
    if comparison.status != "different" or len(names) != 1:
        return comparison
    inputs = tuple(check.batch.values[name] for name in layer.inputs)
    exact = check.batch.values[layer.output]
    bound = check.goldens.framework.bound(names[0], inputs, exact, own)
    if bound is None or comparison.max_abs_diff > bound:
        return comparison
    cause = check.goldens.framework.cause(names[0], inputs, own) or (
        f"{layer.op} has integers of its own, here as near to the real result as it promises"
    )
    return replace(comparison, status="within", bound=bound, cause=cause, first=None)


def _accumulated(
    check: LayerCheck, program: Program, layer: LayerRecord, whole: Whole
) -> list[Comparison]:
    batch = check.batch
    names = (name for name in check.backends if name in whole.backends)
    outcomes = {name: whole.outcome(program, name) for name in names}
    comparisons = []
    goldens = (("integer", batch.integer), ("framework", batch.framework), ("tvm", batch.tvm))
    for source, golden in goldens:
        tensor, gate = golden.tensors.get(layer.output), source == "integer"
        found = _against(program, layer, outcomes, tensor, source, "accumulated", gate, None)
        if tensor is None and layer.output in golden.missing:
            found = [replace(one, cause=golden.missing[layer.output]) for one in found]
        cause = golden.causes.get(layer.output)
        if cause is not None:
            found = [replace(o, cause=cause) if o.status == "different" else o for o in found]
        comparisons += found
    return comparisons


def _against(
    program: Program,
    layer: LayerRecord,
    outcomes: Mapping[str, Outcome],
    golden: I8 | None,
    source: str,
    mode: str,
    gate: bool,
    numbers: Sequence[int] | None,
) -> list[Comparison]:
    """Every backend against one golden, differences located with what the others did."""
    found = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, str):
            found.append(missing(name, source, mode, gate, outcome))
        elif golden is None:
            cause = f"there is no {source} golden of {layer.output}"
            found.append(missing(name, source, mode, gate, cause))
        else:
            actual = read_tensor(program, outcome.dram, layer.output)
            found.append(
                compare_tensors(actual, golden, backend=name, source=source, mode=mode, gate=gate)
            )
    results = [one for one in outcomes.values() if isinstance(one, RunResult)]
    right = [one.actual for one in found if one.status == "equal"]
    evidence = Evidence(results, right, numbers)
    return [locate(one, program, layer.output, evidence) if gate else one for one in found]
