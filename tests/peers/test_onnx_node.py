"""ONNX's own node tests: moves, orders, whole numbers and quantized operators equal the NPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from accelsim.peers.onnx_node import discover
from accelsim.peers.onnx_order import Ordered
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, PASSED
from accelsim.peers.run import run
from accelsim.peers.scope import judged, read_list, unused
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]


def test_every_test_passes_or_is_listed() -> None:
    backends = [Simulator(EDGE8).run]
    outcomes = judged(
        [run(case, EDGE8, backends) for case in discover("onnx_node", Path())], read_list()
    )
    assert [o for o in outcomes if o.status == FAILED] == []
    entries = [entry for entry in read_list() if entry.suite == "onnx_node"]
    assert list(unused(outcomes, entries)) == []
    assert sum(o.status == PASSED for o in outcomes) >= 199
    assert all(o.elements and not o.mismatches for o in outcomes if o.status == PASSED)


def test_no_quantized_operator_is_out_of_scope() -> None:
    names = ("qlinear", "convinteger", "matmulinteger")
    cases = [case for case in discover("onnx_node", Path()) if case.name.startswith(names)]
    assert len(cases) == 12
    assert OUT_OF_SCOPE not in {run(case, EDGE8, []).status for case in cases}


def test_windows_tell_all_values_apart() -> None:
    values = np.random.default_rng(1).permutation(1000).astype(np.float32)
    windows = Ordered(values).windows(values)
    assert len(windows) == 4 and all(one.dtype == np.int8 for one in windows)
    ranks = sum(one.astype(np.int64) + 128 for one in windows)
    assert np.unique(ranks).size == 1000
    assert np.array_equal(np.argsort(ranks), np.argsort(values))
