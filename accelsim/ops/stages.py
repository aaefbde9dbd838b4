"""The stages of a case: what is compared with what, and the first element that differs.

What comes in: a batch, a case, a backend. What goes out: `Outcome`s. Goldens never come from the
stage under test: PyTorch for the arithmetic, the integer reference for simulator and RTL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Backend, Launch, Program, RunResult
from accelsim.compare import compare_tensors
from accelsim.compare.locate import Evidence, locate
from accelsim.emit import launch_memory, read_tensor
from accelsim.ops.batch import TORCH_ROUNDING, Batch
from accelsim.ops.case import Case
from accelsim.ops.operators import operator_of
from accelsim.ops.outcome import Outcome, Stage, compared
from accelsim.ops.torch_kernels import exact_output, float_output, integer_output
from accelsim.reference import torch_cause
from accelsim.spec.config import Config
from accelsim.spec.isa import BY_OPCODE

DISTINCT = 16  # values that a golden has at least, unless its case says why not
SMALL = 64  # elements from which that is asked for
TIE = 2.0**-8  # output steps within which float32 may take the other side of a tie


def arithmetic(batch: Batch, case: Case, stage: Stage) -> Outcome:
    """TVM against PyTorch, or the compiler's form against the reference."""
    if stage is Stage.FLOAT:
        expected, bound = float_output(case)
        actual = batch.float_output(case)
        if expected.shape != actual.shape:
            return compared(case, stage, expected, actual)
        return compared(case, stage, expected, actual, ~_within(actual, expected, bound))
    if stage is Stage.EXPANSION:
        return compared(case, stage, *batch.products(case))
    if stage is Stage.TORCH:
        if operator_of(case.operator).quantized is None:
            return _against_float(batch, case)
        return _against_kernel(batch, case)
    own = operator_of(case.operator).legalized
    if own is not None:
        return own(batch, case)
    golden = batch.stored(case.name, batch.golden(case))
    return compared(case, stage, golden, batch.legalized_stored(case))


def _within(actual: NDArray[Any], expected: NDArray[Any], bound: NDArray[Any]) -> NDArray[Any]:
    """Whether two float results differ by at most the bound, or are the same infinity or none."""
    with np.errstate(invalid="ignore"):
        near = np.abs(actual.astype(np.float64) - expected) <= bound
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.asarray(near | same)


def run(
    batch: Batch, case: Case, stage: Stage, config: Config, backends: Sequence[Backend]
) -> Outcome:
    """Instructions on the last backend; its records must equal those of the ones before it."""
    program, names = batch.program(case, config)
    inputs = dict(zip(names, batch.inputs(case), strict=True))
    launch = Launch(program, launch_memory(program, inputs))
    results = [backend(launch) for backend in backends]
    last, layer, used = results[-1], program.layers[-1], _instructions(program)
    if last.error_code:
        detail = f"stopped with error {last.error_code} at instruction {last.error_index}"
        size = layer.elements
        return Outcome(case.name, stage, config.name, size, size, detail, instructions=used)
    golden = batch.golden(case)
    if too_few(case, golden):
        detail = f"its golden has {len(np.unique(golden))} distinct values; let the case say why"
        return Outcome(case.name, stage, config.name, golden.size, golden.size, detail)
    outputs = {r.backend: read_tensor(program, r.dram, layer.output) for r in results}
    found = compare_tensors(
        outputs[last.backend],
        golden,
        backend=last.backend,
        source="integer",
        mode="isolated",
        gate=True,
    )
    right = [name for name, output in outputs.items() if np.array_equal(output, golden)]
    found = locate(found, program, layer.output, Evidence(results, right))
    detail = _records(results, stage)
    if found.first is not None:
        first = found.first
        detail = (
            f"(n, h, w, c) = {first.index}: expected {first.expected}, got {first.actual}, tile "
            f"{first.tile}, instruction {first.instruction}: {first.text}; {found.cause}"
        )
    wrong = found.mismatches or (1 if detail else 0)
    size = found.elements
    return Outcome(case.name, stage, config.name, size, wrong, detail, instructions=used)


def too_few(case: Case, golden: NDArray[Any]) -> bool:
    """Whether a golden proves little and its case does not say why; drawn cases may be anything."""
    drawn = case.spec.name.startswith("random")
    if case.spec.few or drawn or golden.size < SMALL:
        return False
    return len(np.unique(golden)) < DISTINCT


def _instructions(program: Program) -> tuple[str, ...]:
    """Names of the instructions that occur, in the order of the table; END is in every one."""
    used = (row for opcode, row in BY_OPCODE.items() if program.opcode_mask >> opcode & 1)
    return tuple(row.name for row in used if row.name != "end")


def _records(results: Sequence[RunResult], stage: Stage) -> str:
    """How the records of two backends differ; cycles count where memory is deterministic."""
    if len(results) < 2:
        return ""
    with_cycles = stage is Stage.RTL

    def view(result: RunResult) -> list[tuple[int, ...]]:
        rows = [(r.engine, r.index, r.digest, r.start_cycle, r.end_cycle) for r in result.records]
        return [row if with_cycles else row[:3] for row in rows]

    one, other = view(results[0]), view(results[-1])
    if one == other:
        return ""
    pairs = zip(one, other, strict=False)
    where = next((f"{a} and {b}" for a, b in pairs if a != b), f"{len(one)} and {len(other)} rows")
    return f"records (engine, index, digest, …) differ: {where}"


def _against_kernel(batch: Batch, case: Case) -> Outcome:
    """The reference in PyTorch's rounding equals its kernel; how its own rounding differs."""
    expected = batch.nhwc(case.name, integer_output(case))
    inputs = batch.inputs(case)
    actual = batch.torch_reference.run_layer(case.name, inputs)
    outcome = compared(case, Stage.TORCH, expected, actual)
    if outcome.mismatches and expected.shape == actual.shape:
        cause = torch_cause(batch.torch_reference, case.name, inputs, expected)
        cause = cause or _own_cause(batch, case, actual)
        return _attributed(outcome, cause) if cause else outcome
    return _of_rounding(batch, case, outcome, actual)


def _own_cause(batch: Batch, case: Case, right: NDArray[Any]) -> str | None:
    """The operator's own cause of differences from PyTorch's kernel, within its steps."""
    operator, expected = operator_of(case.operator), integer_output(case)
    golden = batch.stored(case.name, right)
    distance = np.abs(golden.astype(np.int64) - expected.astype(np.int64))
    if operator.cause is None or distance.max() > operator.steps:
        return None
    return operator.cause(case, golden, expected)


def _of_rounding(batch: Batch, case: Case, outcome: Outcome, right: NDArray[Any]) -> Outcome:
    """A case that rounds in another way than PyTorch: `right` is the reference that it equals."""
    if batch.rounding == TORCH_ROUNDING or outcome.failed:
        return outcome
    different = int(np.count_nonzero(batch.golden(case) != right))
    if not different:
        return outcome
    note = f"the case rounds as {batch.rounding}; as {TORCH_ROUNDING} it is as near as it must be"
    causes = f"{outcome.cause}; {note}" if outcome.cause else note
    return replace(outcome, attributed=outcome.attributed + different, cause=causes)


def _against_float(batch: Batch, case: Case) -> Outcome:
    """PyTorch has no quantized kernel: its float kernel, within the operator's bound."""
    right = batch.torch_reference.run_layer(case.name, batch.inputs(case))
    return _of_rounding(batch, case, _near_float(batch, case, right), right)


def _near_float(batch: Batch, case: Case, right: NDArray[Any]) -> Outcome:
    operator = operator_of(case.operator)
    expected = integer_output(case)
    golden = batch.stored(case.name, right)
    if expected.shape != golden.shape:
        return compared(case, Stage.TORCH, expected, golden)
    distance = np.abs(golden.astype(np.int64) - expected.astype(np.int64))
    outcome = compared(case, Stage.TORCH, expected, golden, distance > operator.steps)
    different = int(np.count_nonzero(distance))
    if outcome.mismatches or not different:
        return outcome
    cause = (operator.cause or tie)(case, golden, expected)
    if cause is None:
        detail = f"{different} differ within {operator.steps} steps without a known cause"
        return replace(outcome, mismatches=different, detail=detail)
    return replace(outcome, attributed=different, cause=cause)


def _attributed(outcome: Outcome, cause: str) -> Outcome:
    count = outcome.mismatches
    return replace(outcome, mismatches=0, detail="", cause=cause, attributed=count)


def tie(case: Case, golden: NDArray[Any], expected: NDArray[Any]) -> str | None:
    """The cause "float32 fell on the other side of a tie", where it explains every difference.

    Both must be what the float64 result rounds to when it moves by at most TIE steps.
    """
    steps = exact_output(case) / float(case.scale) + case.zero
    limits = np.iinfo(case.dtype)
    steps = np.clip(steps, limits.min, limits.max)
    apart = golden != expected
    for values in (golden, expected):
        if np.any(np.abs(values.astype(np.float64) - steps)[apart] > 0.5 + TIE):
            return None
    return f"the float64 result lies within {TIE} output steps of a tie, and float32 rounds it away"
