"""LiteRT's reference kernels on random models equal the NPU, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import Requantize
from accelsim.peers import tflite_rules
from accelsim.peers.draws import CASES
from accelsim.peers.litert import MAKERS, discover
from accelsim.peers.outcome import FAILED, PASSED
from accelsim.peers.run import run
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]


@pytest.mark.parametrize("operator", MAKERS)
def test_simulator_equals_every_case(operator: str) -> None:
    cases = [c for c in discover("litert", Path()) if c.name.rpartition("-")[0] == operator]
    outcomes = [run(case, EDGE8, [Simulator(EDGE8).run]) for case in cases]
    assert [o for o in outcomes if o.status != PASSED or o.mismatches] == []
    assert len(outcomes) == CASES and all(o.elements for o in outcomes)


def test_goldens_have_many_values() -> None:
    for case in discover("litert", Path()):
        values = np.concatenate([e.ravel() for e in case.load().expected.values()])
        assert np.unique(values).size >= 16, case.name


def test_cases_are_the_same_in_every_run() -> None:
    one, other = (next(iter(discover("litert", Path()))).load() for _ in range(2))
    assert np.array_equal(one.inputs["x"], other.inputs["x"])
    assert np.array_equal(one.expected["y0"], other.expected["y0"])


@pytest.mark.parametrize("operator", ["conv_2d", "depthwise_conv_2d", "batch_matmul", "mul"])
def test_single_rounding_in_place_of_double_is_noticed(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = tflite_rules.requantize

    def single(_mode: str, *rest: Any) -> Requantize:
        return right("half_up", *rest)

    monkeypatch.setattr(tflite_rules, "requantize", single)
    cases = [c for c in discover("litert", Path()) if c.name.startswith(operator)]
    assert FAILED in {run(case, EDGE8, []).status for case in cases}
