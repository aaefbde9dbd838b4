"""Integer parameters equal those of PyTorch's own functions; the proofs refuse what they must."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from accelsim.artifacts import FixedAdd
from accelsim.legalize.qnnpack import (
    clamp_limits,
    fixed_add,
    integer_bias,
    reason_accumulator_overflows,
    reason_multiplier_unusable,
    requantize_multiplier,
)
from accelsim.reference.derive import Clamp, clamp_of
from accelsim.reference.network import QuantizedTensor
from tests.reference import qnnpack


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


def fixed_sum_differences(scales: np.ndarray, zero_points: tuple[int, int, int]) -> int:
    """Of all pairs of operands, how many sums differ from those of PyTorch's kernel."""
    a, b = (grid.astype(np.uint8) for grid in np.meshgrid(range(256), range(256)))
    pairs = zip((a, b), scales[:2], zero_points[:2], strict=True)
    tensors = [qnnpack.tensor(x, s, z) for x, s, z in pairs]
    expected = qnnpack.add(*tensors, scales[2], zero_points[2])
    fixed = fixed_add(*scales)
    assert fixed is not None
    total = (a.astype(np.int64) - zero_points[0]) * fixed.a_multiplier
    total += (b.astype(np.int64) - zero_points[1]) * fixed.b_multiplier
    steps = np.copysign(np.floor(np.abs(total) / 2.0**fixed.shift + 0.5), total)
    return int(np.count_nonzero(np.clip(steps + zero_points[2], 0, 255) != expected))


def test_fixed_sums_of_all_pairs_equal_qnnpack_with_random_scales(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for _ in range(24):
        ratios = 2.0 ** generator.uniform(-9.9, 7.9), 2.0 ** generator.uniform(-13.9, 7.9)
        output = np.float32(2.0 ** generator.uniform(-8, 4))
        scales = np.array([*(output * ratio for ratio in ratios), output], np.float32)
        points = tuple(int(point) for point in generator.integers(0, 256, 3))
        assert fixed_sum_differences(scales, points) == 0, (scales, points)


@pytest.mark.parametrize("a_power", [-10, -1, 0, 7])
@pytest.mark.parametrize("b_power", [-14, -2, -1, 0, 5])
def test_fixed_sums_of_all_pairs_equal_qnnpack_where_ties_abound(
    a_power: int, b_power: int, seed: int
) -> None:
    generator = np.random.default_rng([seed, a_power + 20, b_power + 20])
    output = np.float32(2.0 ** generator.uniform(-8, 4))
    scales = output * np.float32([2.0**a_power, 2.0**b_power, 1.0])
    points = tuple(int(point) for point in generator.integers(0, 256, 3))
    assert fixed_sum_differences(scales, points) == 0


def test_ratio_just_below_a_power_of_two_rounds_up_to_a_multiplier_of_23_bits() -> None:
    below = np.nextafter(np.float32(1), np.float32(0))
    assert fixed_add(below, below, np.float32(1)) == FixedAdd(1 << 22, 1 << 22, 22)
    assert fixed_sum_differences(np.array([below, below, 1], np.float32), (0, 255, 128)) == 0


@pytest.mark.parametrize("ratios", [(256.0, 1.0), (1.0, 2.0**-15), (2.0**-11, 2.0**-11)])
def test_ratios_for_which_qnnpack_has_no_sum_have_no_fixed_form(
    ratios: tuple[float, float],
) -> None:
    assert fixed_add(np.float32(ratios[0]), np.float32(ratios[1]), np.float32(1)) is None


def test_relu_clamps_at_the_zero_point() -> None:
    assert clamp_limits(np.float32(0.1), 37, (0, 255), 0.0, np.inf) == (37, 255)


def test_relu6_clamps_at_the_level_of_six() -> None:
    assert clamp_limits(np.float32(0.1), 37, (0, 255), 0.0, 6.0) == (37, 97)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_limits_of_compiler_and_reference_equal_pytorchs_clamp_on_ties_and_elsewhere(
    dtype: str, seed: int
) -> None:
    """6 / scale is a tie, next to one, or anything, with zero points of both parities."""
    generator = np.random.default_rng(seed)
    offset = 128 if dtype == "uint8" else 0
    ties = np.float32(6) / (np.arange(2, 120, dtype=np.float32) + np.float32(0.5))
    near = np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(1))
    ends = torch.tensor([offset - 128, offset + 127], dtype=getattr(torch, dtype))
    for scale in np.concatenate([ties, *near, scales(generator, 100)]):
        for point in generator.integers(-100, 100, 4):
            stored = int(point) + offset
            real = torch._make_per_tensor_quantized_tensor(ends, float(scale), stored)
            expected = torch.clamp(real, -1.0, 6.0).int_repr().tolist()
            limits = (offset - 128, offset + 127)
            assert list(clamp_limits(scale, stored, limits, -1.0, 6.0)) == expected
            tensor = QuantizedTensor("y", (1, 4), scale, int(point), dtype)
            low, high = (level - offset for level in expected)
            layer = SimpleNamespace(limits=(-1.0, 6.0))
            assert clamp_of(layer, tensor) == Clamp(int(point), low, high)  # type: ignore[arg-type]


def test_clamp_stays_within_narrow_quantizer_limits() -> None:
    assert clamp_limits(np.float32(1.0), 0, (0, 127), -50.0, 500.0) == (0, 127)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, 2.0**-101, 2.0**100 * (1 + 2.0**-23)])
def test_multiplier_outside_its_range_is_refused(value: float) -> None:
    assert reason_multiplier_unusable(np.array([0.5, value], np.float32)) is not None


@pytest.mark.parametrize("value", [2.0**-100, 0.37, 2.0**100])
def test_multiplier_in_its_range_is_taken(value: float) -> None:
    assert reason_multiplier_unusable(np.array([value], np.float32)) is None


def test_accumulator_bound_is_tight() -> None:
    weight = np.full((2, 1, 1, 1000), 127, np.int8)
    largest = 1000 * 127 * 255
    bias = np.array([0, 2**31 - 1 - largest], np.int32)
    assert reason_accumulator_overflows(weight, 0, bias, -128) is None
    reason = reason_accumulator_overflows(weight, 0, bias + np.int32(1), -128)
    assert reason is not None and "channel 1" in reason
