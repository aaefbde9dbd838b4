"""Integer parameters equal those of PyTorch's own functions; the proofs refuse what they must."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accelsim.legalize.qnnpack import (
    clamp_limits,
    integer_bias,
    reason_accumulator_overflows,
    reason_multiplier_unusable,
    requantize_multiplier,
)


def scales(generator: np.random.Generator, count: int) -> np.ndarray:
    return np.exp(generator.uniform(np.log(1e-4), np.log(1e-1), count)).astype(np.float32)


def test_bias_equals_quantize_per_tensor_near_ties(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for input_scale, weight_scale in scales(generator, 400).reshape(-1, 2):
        product = float(input_scale) * float(weight_scale)
        ties = (generator.integers(-100_000, 100_000, 64) + 0.5) * product
        bias = ties.astype(np.float32)
        expected = torch.quantize_per_tensor(torch.from_numpy(bias), product, 0, torch.qint32)
        actual = integer_bias(bias, input_scale, np.full(64, weight_scale, np.float32))
        np.testing.assert_array_equal(actual, expected.int_repr().numpy())


def test_requantize_multiplier_gives_what_dequantize_and_quantize_give(seed: int) -> None:
    generator = np.random.default_rng(seed)
    found = 0
    for source, target in scales(generator, 400).reshape(-1, 2):
        zero_point = int(generator.integers(-128, 128))
        values = np.arange(-128, 128, dtype=np.int8)
        levels = torch.from_numpy(values.astype(np.float32) - zero_point) * float(source)
        expected = torch.quantize_per_tensor(levels, float(target), 0, torch.qint32).int_repr()
        multiplier = requantize_multiplier(source, zero_point, target)
        if multiplier is not None:
            found += 1
            centred = values.astype(np.float32) - np.float32(zero_point)
            np.testing.assert_array_equal(np.rint(centred * multiplier), expected.numpy())
    assert found >= 195


def test_relu_clamps_at_the_zero_point() -> None:
    assert clamp_limits(np.float32(0.1), 37, (0, 255), 0.0, np.inf) == (37, 255)


def test_relu6_clamps_at_the_level_of_six() -> None:
    assert clamp_limits(np.float32(0.1), 37, (0, 255), 0.0, 6.0) == (37, 97)


def test_clamp_stays_within_narrow_quantizer_limits() -> None:
    assert clamp_limits(np.float32(1.0), 0, (0, 127), -50.0, 500.0) == (0, 127)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, 2.0**-101, 2.0**100])
def test_multiplier_outside_its_range_is_refused(value: float) -> None:
    assert reason_multiplier_unusable(np.array([0.5, value], np.float32)) is not None


@pytest.mark.parametrize("value", [2.0**-100, 0.37, 2.0**99])
def test_multiplier_in_its_range_is_taken(value: float) -> None:
    assert reason_multiplier_unusable(np.array([value], np.float32)) is None


def test_accumulator_bound_is_tight() -> None:
    weight = np.full((2, 1, 1, 1000), 127, np.int8)
    largest = 1000 * 127 * 255
    bias = np.array([0, 2**31 - 1 - largest], np.int32)
    assert reason_accumulator_overflows(weight, 0, bias, -128) is None
    reason = reason_accumulator_overflows(weight, 0, bias + np.int32(1), -128)
    assert reason is not None and "channel 1" in reason
