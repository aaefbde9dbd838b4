"""A slice of every suite on the RTL, its records against the simulator's outputs and the peer's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from accelsim.artifacts import Backend
from accelsim.cosim.session import Cosim
from accelsim.peers.outcome import PASSED
from accelsim.peers.run import run
from accelsim.peers.suites import discover
from accelsim.spec.config import CONFIGS

pytestmark = pytest.mark.rtl
EDGE8 = CONFIGS["edge8"]
KERNELS = {
    *("add", "mul", "softmax", "ds_cnn_s", "conv_2x2_dilation", "depthwise_2", "transpose_conv_1"),
    *("batch_matmul_3_s8", "avgpooling", "maxpooling_1", "transpose_nchw", "pad_int8_1"),
    *("minimum_scalar_1_int8", "fc_per_ch"),
}


@pytest.fixture(scope="module")
def rtl() -> Iterator[Backend]:
    with Cosim(EDGE8) as session:
        yield session.launch


def test_cmsis_kernels_equal_the_rtl(data: Path, rtl: Backend) -> None:
    cases = [case for case in discover("cmsis_nn", data) if case.name in KERNELS]
    outcomes = [run(case, EDGE8, [rtl]) for case in cases]
    assert [o for o in outcomes if o.status != PASSED or o.mismatches] == []
    assert len(outcomes) == len(KERNELS)


@pytest.mark.parametrize("suite", ["litert", "onnxruntime", "qnnpack"])
def test_first_case_of_every_operator_equals_the_rtl(suite: str, rtl: Backend) -> None:
    cases = [case for case in discover(suite, Path()) if case.name.endswith("-0")]
    outcomes = [run(case, EDGE8, [rtl]) for case in cases]
    assert cases and [o for o in outcomes if o.status != PASSED] == []
    assert all(o.elements for o in outcomes)
