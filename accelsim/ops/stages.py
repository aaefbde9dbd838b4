"""The stages of a case: what is compared with what, and the first element that differs.

What comes in: a batch, a case, a backend. What goes out: `Outcome`s. Goldens never come from the
stage under test: PyTorch for the arithmetic, the integer reference for simulator and RTL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Backend, Launch, RunResult
from accelsim.compare import compare_tensors
from accelsim.compare.locate import Evidence, locate
from accelsim.emit import launch_memory, read_tensor
from accelsim.ops.batch import Batch, nhwc
from accelsim.ops.case import Case
from accelsim.ops.torch_kernels import (
    dequantized_output,
    eager_input,
    float_output,
    integer_output,
    quantized_input,
)
from accelsim.reference import torch_cause
from accelsim.spec.config import Config


class Stage(StrEnum):
    """In the order in which they are run: each relies on those before it."""

    FLOAT = "float"  # TVM's float operator against PyTorch's, within the bound of summation
    TORCH = "int8"  # the integer reference against PyTorch's qnnpack kernel
    LEGALIZED = "legalized"  # the compiler's integer form on TVM's CPU code against the reference
    SIM = "sim"  # instructions on the simulator against the reference
    RTL = "rtl"  # the same instructions on the RTL, records against the simulator's
    STALLS = "rtl-stalls"  # and with a memory that stalls at random


STAGES = tuple(Stage)
EAGER = (
    "torch.quantize_per_tensor adds the zero point before it rounds, the exported graph and the "
    "host's code after it"
)
ARITHMETIC = (Stage.FLOAT, Stage.TORCH, Stage.LEGALIZED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case in one stage. `detail` says where it first differs, `cause` what explains it."""

    case: str
    stage: Stage
    config: str  # "" for arithmetic
    elements: int
    mismatches: int
    detail: str = ""
    cause: str = ""

    @property
    def failed(self) -> bool:
        """Whether it differs, or compared nothing."""
        return self.mismatches > 0 or self.elements == 0


def arithmetic(batch: Batch, case: Case, stage: Stage) -> Outcome:
    """TVM against PyTorch, or the compiler's form against the reference."""
    if stage is Stage.FLOAT:
        expected, bound = float_output(case)
        actual = batch.float_output(case)
        wrong = np.abs(actual.astype(np.float64) - expected) > bound
        return _outcome(case, stage, "", expected, actual, wrong)
    if stage is Stage.TORCH:
        return _against_torch(batch, case)
    if case.floats is not None:
        return _boundary(batch, case)
    return _stored(case, stage, batch.golden(case), _requantized(batch, case))


def run(
    batch: Batch, case: Case, stage: Stage, config: Config, backends: Sequence[Backend]
) -> Outcome:
    """Instructions on the last backend; its records must equal those of the ones before it."""
    program, names = batch.program(case, config)
    inputs = dict(zip(names, batch.inputs(case), strict=True))
    launch = Launch(program, launch_memory(program, inputs))
    results = [backend(launch) for backend in backends]
    last, (layer,) = results[-1], program.layers
    if last.error_code:
        detail = f"stopped with error {last.error_code} at instruction {last.error_index}"
        return Outcome(case.name, stage, config.name, layer.elements, layer.elements, detail)
    golden = batch.golden(case)
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
    return Outcome(case.name, stage, config.name, found.elements, wrong, detail)


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


def _requantized(batch: Batch, case: Case) -> NDArray[Any]:
    """int8 (n, h, w, c) from the legalized module's float output: (q - zero)·scale inverted."""
    steps = np.rint(batch.legalized_output(case).astype(np.float64) / float(case.scale))
    return nhwc((steps + case.zero).astype(np.uint8))


def _boundary(batch: Batch, case: Case) -> Outcome:
    """quantize: the integers of the host's code; dequantize: its floats, bit for bit."""
    if case.operator == "dequantize":
        reals, actual = dequantized_output(case), batch.legalized_output(case)
        return _outcome(case, Stage.LEGALIZED, "", reals, actual, actual != reals)
    stored = quantized_input(case)
    floats = {
        source: np.zeros(_shape(batch, tensor), np.float32)
        for source, tensor in batch.reference.network.inputs
    }
    mine = {tensor: source for source, tensor in batch.reference.network.inputs}
    assert case.floats is not None
    floats[mine[case.input_name(0)]] = case.floats
    made = batch.reference.quantize_inputs(floats)[case.input_name(0)]
    outcome = _stored(case, Stage.LEGALIZED, nhwc(stored), made)
    if not outcome.mismatches:  # the host's code, behind which a ReLU follows
        rectified = nhwc(np.maximum(stored, np.uint8(case.zero)))
        outcome = _stored(case, Stage.LEGALIZED, rectified, _requantized(batch, case))
    eager, known = eager_input(case)
    different = int(np.count_nonzero(eager != stored))
    if not outcome.mismatches and different:
        if not np.array_equal(eager, known):
            detail = "torch.quantize_per_tensor differs without a known cause"
            return Outcome(case.name, Stage.LEGALIZED, "", stored.size, different, detail)
        note = f"{different} of {stored.size}: {EAGER}"
        return Outcome(case.name, Stage.LEGALIZED, "", stored.size, 0, "", note)
    return outcome


def _shape(batch: Batch, tensor: str) -> tuple[int, ...]:
    return batch.reference.network.tensors[tensor].shape


def _against_torch(batch: Batch, case: Case) -> Outcome:
    torch_output = nhwc(integer_output(case))
    outcome = _stored(case, Stage.TORCH, torch_output, batch.golden(case))
    if outcome.mismatches:
        cause = torch_cause(batch.reference, case.name, batch.inputs(case), torch_output)
        if cause:
            count = outcome.mismatches
            note = f"{count} of {outcome.elements}: {cause}"
            return Outcome(case.name, Stage.TORCH, "", outcome.elements, 0, "", note)
    return outcome


def _stored(case: Case, stage: Stage, expected: NDArray[Any], actual: NDArray[Any]) -> Outcome:
    if expected.shape != actual.shape:
        detail = f"shape {actual.shape}, expected {expected.shape}"
        return Outcome(case.name, stage, "", expected.size, expected.size, detail)
    return _outcome(case, stage, "", expected, actual, actual != expected)


def _outcome(
    case: Case,
    stage: Stage,
    config: str,
    expected: NDArray[Any],
    actual: NDArray[Any],
    wrong: NDArray[Any],
) -> Outcome:
    detail = ""
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        detail = f"element {at}: expected {expected[at]}, got {actual[at]}"
    return Outcome(case.name, stage, config, expected.size, int(wrong.sum()), detail)
