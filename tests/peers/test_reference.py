"""The independent integer reference equals every framework too, in that framework's rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accelsim.codegen.launch import to_nhwc
from accelsim.errors import InputError
from accelsim.peers.case import Compiled
from accelsim.peers.draws import COMPILED
from accelsim.peers.qdq import LAYER
from accelsim.peers.run import run
from accelsim.peers.suites import discover
from accelsim.reference import Reference, build
from accelsim.spec.config import CONFIGS

pytestmark = pytest.mark.campaign


def exact_forms(suite: str) -> dict[str, Compiled]:
    """By operator, the first case for the compiler that has no known difference."""
    found: dict[str, Compiled] = {}
    for case in discover(suite, Path()):
        operator, _, number = case.name.rpartition("-")
        if operator in found or int(number) >= COMPILED:
            continue
        form = case.load().compiled  # type: ignore[union-attr]
        if form is not None and not run(case, CONFIGS["edge8"], []).mismatches:
            found[operator] = form
    return found


def computed(reference: Reference, form: Compiled, layout: str) -> np.ndarray:
    """The layer's output, as the graph lies when its axes are named so."""
    inputs = tuple(to_nhwc(one, layout[: one.ndim]) for one in form.inputs)
    return reference.run_layer(LAYER, inputs)


@pytest.mark.parametrize("suite", ["litert", "onnxruntime", "qnnpack"])
def test_reference_equals_the_peer(suite: str) -> None:
    forms, different = exact_forms(suite), []
    for operator, form in forms.items():
        reference, layout = build(form.model(), optimization=0), "nchw"
        try:
            output = computed(reference, form, layout)
        except InputError:  # no image: the last axis has the channels
            layout = "nhwc"
            output = computed(reference, form, layout)
        expected = to_nhwc(form.expected, layout[: form.expected.ndim])
        if not np.array_equal(output.reshape(expected.shape), expected):
            different.append(operator)
    assert len(forms) >= 10 and different == []
