"""ONNX Runtime's and PyTorch's quantized kernels on random cases, against the NPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.peers import ort, ort_dense, ort_pointwise, qnnpack, qnnpack_dense
from accelsim.peers.case import PeerCase
from accelsim.peers.draws import CASES, DISTINCT
from accelsim.peers.outcome import FAILED, PASSED
from accelsim.peers.run import run
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]
CASES_OF = {
    (suite, operator): [case for case in cases if case.name.rpartition("-")[0] == operator]
    for suite, module in (("onnxruntime", ort), ("qnnpack", qnnpack))
    for cases in [list(module.discover(suite, Path()))]
    for operator in module.MAKERS
}
EXPLAINED = {
    *(ort_pointwise.ADD_CAUSE, ort_pointwise.MUL_CAUSE, ort_dense.POOL_CAUSE),
    *(ort_pointwise.RESIZE_CAUSE, qnnpack_dense.RESIZE_CAUSE),
}


@pytest.mark.parametrize(("suite", "operator"), CASES_OF)
def test_simulator_equals_every_case_or_its_difference_is_computed(
    suite: str, operator: str
) -> None:
    cases = CASES_OF[(suite, operator)]
    outcomes = [run(case, EDGE8, [Simulator(EDGE8).run]) for case in cases]
    assert [o for o in outcomes if o.status != PASSED] == []
    assert len(outcomes) == CASES and all(o.elements >= DISTINCT for o in outcomes)
    assert all(o.largest == 1 and o.cause in EXPLAINED for o in outcomes if o.mismatches)


def test_only_sums_products_averages_and_resizes_differ() -> None:
    found = {
        operator
        for (suite, operator), cases in CASES_OF.items()
        if any(run(case, EDGE8, []).mismatches for case in cases)
    }
    assert found == {"QLinearAdd", "QLinearAveragePool", "QLinearMul", "upsample_bilinear2d"}


def test_difference_that_the_cause_does_not_give_fails() -> None:
    cases = CASES_OF[("onnxruntime", "QLinearAdd")]
    trials = [case.load() for case in cases if run(case, EDGE8, []).mismatches]
    trial = trials[0]
    known = trial.alternative["y"].copy()
    known[np.unravel_index(0, known.shape)] ^= 1
    planted = PeerCase("s", "c", lambda: replace(trial, alternative={"y": known}))
    assert run(planted, EDGE8, []).status == FAILED


def test_npu_that_leaves_its_definition_fails() -> None:
    simulator = Simulator(EDGE8, bug="conv_sign").run
    outcomes = [run(c, EDGE8, [simulator]) for c in CASES_OF[("qnnpack", "conv2d")]]
    assert any(o.status == FAILED and "the definition has" in o.detail for o in outcomes)
