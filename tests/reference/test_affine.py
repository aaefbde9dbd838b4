"""Convolution and linear of the integer reference against PyTorch's qnnpack kernels."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.errors import ModelError
from accelsim.reference.graph import read_network
from accelsim.reference.integer import build_network
from tests.reference import affine_cases, qnnpack
from tests.reference.qdq import QdqModule

COUNT = 24


def run_cases(cases: list[affine_cases.Case], zero_shift: int = 0) -> dict[str, np.ndarray]:
    reference = build_network(read_network(affine_cases.module_of(cases, zero_shift)))
    return {c.name: reference.run_layer(c.name, (qnnpack.nhwc(c.x),)) for c in cases}


@pytest.fixture
def cases(seed: int) -> list[affine_cases.Case]:
    rng = np.random.default_rng(seed)
    return [affine_cases.random_case(rng, index) for index in range(COUNT)]


def test_random_convolutions_and_linears_equal_qnnpack(cases: list[affine_cases.Case]) -> None:
    actual = run_cases(cases)
    assert len(actual) == COUNT
    assert {case.kind for case in cases} == {"conv2d", "depthwise", "linear"}
    for case in cases:
        np.testing.assert_array_equal(actual[case.name], case.expected(), err_msg=str(case))


def test_random_cases_reach_both_ends_and_both_weight_forms(
    cases: list[affine_cases.Case],
) -> None:
    outputs = np.concatenate([case.expected().ravel() for case in cases])
    assert {-128, 127} <= set(outputs.tolist())
    assert {case.w_scale.size > 1 for case in cases} == {True, False}
    assert any(case.w_zero.any() for case in cases)
    assert {0, 255} <= {case.x_zero for case in cases}


def test_wrong_input_zero_point_is_seen_in_every_layer(cases: list[affine_cases.Case]) -> None:
    actual = run_cases(cases[:4], zero_shift=1)
    for case in cases[:4]:
        assert np.any(actual[case.name] != case.expected()), case.name


def bias_only(accumulators: np.ndarray, multiplier: float, rng: np.random.Generator) -> object:
    """A linear layer whose accumulators are its biases: inputs equal their zero point."""
    x_scale = np.float32(2.0 ** rng.uniform(-8, -2))
    w_scale = (2.0 ** rng.uniform(-8, -7, accumulators.size)).astype(np.float32)
    scale = np.float32(float(x_scale * w_scale.mean()) / multiplier)
    steps = accumulators if multiplier == 1 else np.rint(accumulators / (x_scale * w_scale / scale))
    if multiplier == 1:
        w_scale[:] = w_scale[0]
        scale = np.float32(x_scale * w_scale[0])
    return affine_cases.Case(
        name="linear",
        kind="linear",
        x=np.full((1, 1), 7, np.uint8),
        x_scale=x_scale,
        x_zero=7,
        weight=np.ones((accumulators.size, 1), np.int8),
        w_scale=w_scale,
        w_zero=np.zeros(accumulators.size, np.int64),
        bias=(steps * (x_scale * w_scale).astype(np.float64)).astype(np.float32),
        scale=scale,
        zero=128,
        relu=False,
    )


@pytest.mark.parametrize("multiplier", [1.0, 2.0**-15, 2.0**-17])
def test_biases_and_multipliers_on_ties_round_as_qnnpack_does(multiplier: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ties = rng.integers(-120, 120, 2000) + 0.5
    case = bias_only(ties, multiplier, rng)
    assert isinstance(case, affine_cases.Case)
    np.testing.assert_array_equal(run_cases([case])["linear"], case.expected())


def test_accumulator_beyond_int32_is_refused_by_layer_name() -> None:
    module = QdqModule(x=(1, 70000))
    q = module.quantize(module.inputs[0], "in", np.float32(0.1), 0)
    weight = module.weight(
        np.full((1, 70000), -128, np.int8), np.ones(1, np.float32), np.zeros(1, np.int64)
    )
    value = module.linear(module.dequantize(q), weight, np.zeros(1, np.float32))
    out = module.quantize(value, "classifier", np.float32(1e6), 0)
    with pytest.raises(ModelError, match=r"'classifier'.*beyond int32"):
        build_network(read_network(module.module(module.dequantize(out))))
