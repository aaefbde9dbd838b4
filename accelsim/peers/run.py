"""A case on the NPU: its layers' definition, the simulator and the RTL against the peer's outputs.

What comes in: a `PeerCase`, a configuration and backends. What goes out: an `Outcome`. It must not
know any peer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from accelsim.artifacts import I8, Backend, Launch, Program
from accelsim.emit import compile_region, launch_memory, read_tensor
from accelsim.errors import AccelsimError, ModelError
from accelsim.peers.case import NetworkTrial, OutOfScopeError, PeerCase, Trial
from accelsim.peers.definition import tensors
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, PASSED, Outcome
from accelsim.spec.config import Config


def run(case: PeerCase, config: Config, backends: Sequence[Backend]) -> Outcome:
    """Run one case on every backend; equal, or every difference explained, passes."""
    try:
        trial = case.load()
        if isinstance(trial, NetworkTrial):
            return _network(case, trial, config, backends)
        return _layers(case, trial, config, backends)
    except (OutOfScopeError, ModelError) as error:
        return Outcome(case.suite, case.name, OUT_OF_SCOPE, str(error))
    except AccelsimError as error:
        return Outcome(case.suite, case.name, FAILED, str(error))


def _layers(case: PeerCase, trial: Trial, config: Config, backends: Sequence[Backend]) -> Outcome:
    defined = tensors(trial.region, trial.inputs)
    program = compile_region(trial.region, config)
    verdict = _against_peer(case, trial, defined)
    for backend in backends:
        if verdict.status == FAILED:
            break
        found = _launch(program, trial, backend)
        wrong = found if isinstance(found, str) else _different(found, defined, "the definition")
        if wrong:
            verdict = replace(verdict, status=FAILED, detail=wrong)
    exact = verdict.status == PASSED and not verdict.mismatches
    if trial.compiled is not None and exact:
        from accelsim.peers.compiler import difference  # TVM, which other cases do without

        detail = difference(trial.compiled, config, backends)
        if detail:
            verdict = replace(verdict, status=FAILED, detail=f"compiled: {detail}")
    return verdict


def _network(
    case: PeerCase, trial: NetworkTrial, config: Config, backends: Sequence[Backend]
) -> Outcome:
    """Outputs and layers against the peer's, element by element, whatever their type."""
    verdict = Outcome(case.suite, case.name, PASSED, "", trial.expected.size)
    for backend in backends:
        network = trial.run(config, backend)
        found = network.outputs
        verdict = replace(verdict, elements=trial.expected.size + network.compared)
        if network.wrong:
            return replace(verdict, status=FAILED, detail=network.wrong)
        if found.size != trial.expected.size or not found.size:
            detail = f"an output of shape {found.shape}, the peer's is {trial.expected.shape}"
            return replace(verdict, status=FAILED, detail=detail)
        differences = np.abs(found.ravel() - trial.expected.ravel().astype(np.float64))
        wrong = int(np.count_nonzero(differences))
        other = network.alternative
        if wrong and other is not None and _near(found, other, network.within * network.step):
            largest = int(np.rint(differences.max() / network.step))
            own = f"; layer {network.own} has integers of its own" if network.own else ""
            cause = f"{trial.cause}{own}"
            verdict = replace(verdict, mismatches=wrong, largest=largest, cause=cause)
        elif wrong:
            detail = f"{wrong} of {found.size} elements differ, by {differences.max():g} at most"
            return replace(verdict, status=FAILED, detail=detail, mismatches=wrong)
    return verdict


def _near(found: np.ndarray, other: np.ndarray, distance: float) -> bool:
    """Whether no element is further away, but for float32's last bits."""
    differences = np.abs(found.ravel().astype(np.float64) - other.ravel())
    return bool(differences.max() <= distance * (1 + 1e-5))


def _launch(program: Program, trial: Trial, backend: Backend) -> Mapping[str, I8] | str:
    """Outputs by name, or what went wrong."""
    result = backend(Launch(program, launch_memory(program, trial.inputs)))
    if result.error_code:
        where = f"error {result.error_code} at instruction {result.error_index}"
        return f"{result.backend} stopped with {where}"
    return {n: read_tensor(program, result.dram, n) for n in trial.expected}


def _against_peer(case: PeerCase, trial: Trial, defined: Mapping[str, I8]) -> Outcome:
    """The layers' definition against the peer: equal, or different for the known cause."""
    pairs = [(defined[name].astype(np.int64), trial.expected[name]) for name in trial.expected]
    differences = np.concatenate([(one.reshape(e.shape) - e).ravel() for one, e in pairs])
    wrong, largest = int(np.count_nonzero(differences)), int(np.abs(differences).max(initial=0))
    verdict = Outcome(
        case.suite, case.name, PASSED, "", differences.size, wrong, largest, trial.cause
    )
    if not differences.size:
        return replace(verdict, status=FAILED, detail="nothing was compared")
    if not wrong:
        return replace(verdict, cause="")
    known = trial.alternative
    if set(known) == set(trial.expected) and not _different(known, trial.expected, ""):
        return verdict
    detail = _different(defined, trial.expected, "the peer")
    return replace(verdict, status=FAILED, detail=f"the layer's definition: {detail}")


def _different(found: Mapping[str, I8], wanted: Mapping[str, I8], whose: str) -> str:
    """Where outputs first differ from what is wanted; nothing where they are equal."""
    for name in sorted(set(found) & set(wanted)):
        values = found[name]
        expected = wanted[name].reshape(values.shape)
        wrong = values != expected
        if wrong.any():
            at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            return (
                f"{int(wrong.sum())} of {wrong.size} elements differ; (n, h, w, c) = {at}: {whose} "
                f"has {expected[at]}, not {values[at]}"
            )
    return ""
