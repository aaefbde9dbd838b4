"""A case on the NPU: its layers' definition, the simulator and the RTL against the peer's outputs.

What comes in: a `PeerCase`, a configuration and backends. What goes out: an `Outcome`. It must not
know any peer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from accelsim.artifacts import I8, Backend, Launch, Program
from accelsim.emit import compile_region, launch_memory, read_tensor
from accelsim.errors import AccelsimError, ModelError
from accelsim.peers.case import OutOfScopeError, PeerCase, Trial
from accelsim.peers.definition import tensors
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, PASSED, Outcome
from accelsim.spec.config import Config


def run(case: PeerCase, config: Config, backends: Sequence[Backend]) -> Outcome:
    """Run one case on every backend; equal, or every difference explained, passes."""
    try:
        trial = case.load()
        defined = tensors(trial.region, trial.inputs)
        program = compile_region(trial.region, config)
    except (OutOfScopeError, ModelError) as error:
        return Outcome(case.suite, case.name, OUT_OF_SCOPE, str(error))
    except AccelsimError as error:
        return Outcome(case.suite, case.name, FAILED, str(error))
    outputs = {name: defined[name] for name in trial.expected}
    verdict = _compare(case, trial, "the layer's definition", outputs)
    for backend in backends:
        if verdict.status == FAILED:
            break
        try:
            name, found = _launch(program, trial, backend)
        except AccelsimError as error:
            return Outcome(case.suite, case.name, FAILED, str(error))
        if found is None:
            return Outcome(case.suite, case.name, FAILED, name)
        verdict = _compare(case, trial, name, found)
    return verdict


def _launch(
    program: Program, trial: Trial, backend: Backend
) -> tuple[str, Mapping[str, I8] | None]:
    """(backend, outputs), or (what went wrong, None)."""
    result = backend(Launch(program, launch_memory(program, trial.inputs)))
    if result.error_code:
        where = f"error {result.error_code} at instruction {result.error_index}"
        return f"{result.backend} stopped with {where}", None
    return result.backend, {n: read_tensor(program, result.dram, n) for n in trial.expected}


def _compare(case: PeerCase, trial: Trial, who: str, outputs: Mapping[str, I8]) -> Outcome:
    differences = {
        name: outputs[name].reshape(expected.shape).astype(np.int64) - expected
        for name, expected in trial.expected.items()
    }
    elements = sum(d.size for d in differences.values())
    wrong = sum(int(np.count_nonzero(d)) for d in differences.values())
    if not elements:
        return Outcome(case.suite, case.name, FAILED, "nothing was compared")
    largest = max(int(np.abs(d).max()) for d in differences.values())
    cause = trial.explain(outputs) if wrong and trial.explain is not None else None
    status = FAILED if wrong and cause is None else PASSED
    detail = ""
    if status == FAILED:
        name, values = next((n, d) for n, d in differences.items() if d.any())
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(values != 0)), values.shape))
        expected = int(trial.expected[name][at])
        detail = (
            f"{who}: {wrong} of {elements} elements differ, by {largest} at most; (n, h, w, c) = "
            f"{at}: the peer has {expected}, not {expected + int(values[at])}"
        )
    return Outcome(case.suite, case.name, status, detail, elements, wrong, largest, cause or "")
