"""Cases through the whole compiler: what it derives from scales is what each framework computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.peers.case import Compiled, Trial
from accelsim.peers.compiler import difference
from accelsim.peers.draws import COMPILED
from accelsim.peers.suites import discover
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]
NOT_COMPILED = {
    "litert": {
        *("mirror_pad", "split", "space_to_depth", "depth_to_space", "resize_nearest", "reshape"),
        *("broadcast_to", "gather_nd"),
    },
    "onnxruntime": set(),
    "qnnpack": set(),
}


def forms(suite: str) -> dict[str, Compiled]:
    """The first case of every operator that has a form for the compiler."""
    found = {}
    for case in discover(suite, Path()):
        operator, _, number = case.name.rpartition("-")
        if int(number) < COMPILED and operator not in found:
            trial = case.load()
            assert isinstance(trial, Trial)
            if trial.compiled is not None:
                found[operator] = trial.compiled
    return found


@pytest.mark.parametrize("suite", NOT_COMPILED)
def test_every_operator_that_computes_goes_through_the_compiler(suite: str) -> None:
    operators = {case.name.rpartition("-")[0] for case in discover(suite, Path())}
    assert operators - forms(suite).keys() == NOT_COMPILED[suite]


@pytest.mark.parametrize("rounding", ["fp32", "onnxruntime"])
def test_other_rounding_differs_from_litert(rounding: str) -> None:
    form = forms("litert")["mul"]
    other = replace(form, model=lambda: replace(form.model(), rounding=rounding))
    assert difference(form, EDGE8, [Simulator(EDGE8).run]) == ""
    assert "elements differ" in difference(other, EDGE8, [Simulator(EDGE8).run])


def test_wrong_expectation_is_found() -> None:
    form = forms("qnnpack")["linear"]
    wrong = form.expected.copy()
    wrong[np.unravel_index(0, wrong.shape)] ^= 1
    said = difference(replace(form, expected=wrong), EDGE8, [Simulator(EDGE8).run])
    assert said.startswith(f"1 of {wrong.size} elements differ")
