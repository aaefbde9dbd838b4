"""Residual add of the integer reference: both rules, against PyTorch and the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.reference.causes import torch_cause
from accelsim.reference.operators.add import QNNPACK_ADD
from accelsim.spec import arithmetic
from tests.reference import qnnpack
from tests.reference.qdq import op
from tests.reference.single import Input, layer, stored

SHAPE = (2, 6, 5, 7)


def plus(module: Any, a: Any, b: Any) -> Any:
    return module.emit(op.add(a, b))


def plus_relu(module: Any, a: Any, b: Any) -> Any:
    return module.emit(op.nn.relu(plus(module, a, b)))


def expected(a: np.ndarray, b: np.ndarray, inputs: list[Input], scale: Any, zero: int) -> Any:
    tensors = [
        qnnpack.tensor(v, one.scale, one.zero) for v, one in zip((a, b), inputs, strict=True)
    ]
    return qnnpack.nhwc(qnnpack.add(*tensors, scale, zero))


@pytest.mark.parametrize("rule", ["fp32", "qnnpack"])
@pytest.mark.parametrize("relu", [False, True])
def test_add_with_random_scales_equals_qnnpack(rule: str, relu: bool, seed: int) -> None:
    rng = np.random.default_rng([seed, 10, relu])
    inputs = [Input(SHAPE, np.float32(2.0 ** rng.uniform(-6, -1)), zero) for zero in (0, 201)]
    scale, zero = np.float32(2.0 ** rng.uniform(-4, 0)), 100
    run = layer("add", inputs, plus_relu if relu else plus, scale, zero, rule)
    a, b = stored(rng, SHAPE), stored(rng, SHAPE)
    tensors = [qnnpack.tensor(v, i.scale, i.zero) for v, i in zip((a, b), inputs, strict=True)]
    golden = qnnpack.nhwc(qnnpack.add(*tensors, scale, zero, relu=relu))
    actual = run.run_layer("add", (qnnpack.nhwc(a), qnnpack.nhwc(b)))
    np.testing.assert_array_equal(actual, golden)
    assert np.unique(golden).size > 20


@pytest.mark.parametrize(("a_half", "b_half"), [(1, 1), (2, 1), (3, 2)])
def test_fixed_point_rule_equals_qnnpack_where_every_sum_may_be_a_tie(
    a_half: int, b_half: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    scale = np.float32(0.3)
    scales = (scale * np.float32(2.0**-a_half), scale * np.float32(2.0**-b_half))
    inputs = [Input(SHAPE, scales[0], 128), Input(SHAPE, scales[1], 77)]
    run = layer("add", inputs, plus, scale, 90, "qnnpack")
    a, b = stored(rng, SHAPE), stored(rng, SHAPE)
    actual = run.run_layer("add", (qnnpack.nhwc(a), qnnpack.nhwc(b)))
    np.testing.assert_array_equal(actual, expected(a, b, inputs, scale, 90))


def test_float_rule_differs_from_qnnpack_only_on_ties_and_the_cause_is_computed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [Input(SHAPE, np.float32(0.25), 128), Input(SHAPE, np.float32(0.25), 128)]
    run = layer("add", inputs, plus, np.float32(0.5), 128)
    a, b = stored(rng, SHAPE), stored(rng, SHAPE)
    given = (qnnpack.nhwc(a), qnnpack.nhwc(b))
    actual, golden = run.run_layer("add", given), expected(a, b, inputs, np.float32(0.5), 128)
    different = actual != golden
    total = qnnpack.nhwc(a).astype(int) + qnnpack.nhwc(b).astype(int)
    assert different.any() and np.all(total[different] % 2 == 1)
    assert torch_cause(run, "add", given, golden) == QNNPACK_ADD
    golden[0, 0, 0, 0] ^= 1
    assert torch_cause(run, "add", given, golden) is None


@pytest.mark.parametrize("case", range(4))
def test_every_pair_of_operands_equals_the_specification(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    tie = case % 2 == 1
    output = np.float32(2.0 ** rng.uniform(-4, -1))
    scales = [output * np.float32(0.5 if tie else 2.0 ** rng.uniform(-2, 1)) for _ in range(2)]
    shape, zeros = (1, 256, 1, 256), [int(zero) for zero in rng.integers(0, 256, 3)]
    inputs = [Input(shape, scale, zero) for scale, zero in zip(scales, zeros[:2], strict=True)]
    run = layer("add", inputs, plus, output, zeros[2])
    a, b = (grid.astype(np.int64) for grid in np.meshgrid(range(256), range(256)))
    actual = run.run_layer(
        "add", tuple(qnnpack.nhwc(v.reshape(shape).astype(np.uint8)) for v in (a, b))
    )
    scaled = arithmetic.add_fp32(a - zeros[0], b - zeros[1], *scales, np.float32(1) / output)
    golden = arithmetic.finish(scaled, zeros[2] - 128, -128, 127)
    np.testing.assert_array_equal(actual, golden.reshape(shape).transpose(0, 2, 3, 1))


@pytest.mark.parametrize("ratios", [(300, 1), (2.0**-15, 1), (2.0**-11, 2.0**-11)])
def test_sum_with_ratios_for_which_qnnpack_is_not_defined_is_fp32(
    ratios: tuple[float, float], seed: int
) -> None:
    inputs = [Input(SHAPE, np.float32(0.1) * np.float32(ratio), 128) for ratio in ratios]
    run = layer("sum", inputs, plus, np.float32(0.1), 0, "qnnpack")
    other = layer("sum", inputs, plus, np.float32(0.1), 0, "fp32")
    given = tuple(qnnpack.nhwc(stored(np.random.default_rng([seed, i]), SHAPE)) for i in range(2))
    np.testing.assert_array_equal(run.run_layer("sum", given), other.run_layer("sum", given))


def test_fixed_point_rule_equals_the_specification_for_every_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    output = np.float32(2.0 ** rng.uniform(-4, -1))
    scales = [output * np.float32(0.75), output * np.float32(2.0 ** rng.uniform(-6, 0))]
    shape, zeros = (1, 256, 1, 256), [int(zero) for zero in rng.integers(0, 256, 3)]
    inputs = [Input(shape, scale, zero) for scale, zero in zip(scales, zeros[:2], strict=True)]
    run = layer("add", inputs, plus, output, zeros[2], "qnnpack")
    a, b = (grid.astype(np.int64) for grid in np.meshgrid(range(256), range(256)))
    actual = run.run_layer(
        "add", tuple(qnnpack.nhwc(v.reshape(shape).astype(np.uint8)) for v in (a, b))
    )
    # The larger ratio lies in [1/2, 1), so that multipliers of 22 bits have 22 below the point.
    factors = [np.rint(float(s / output) * 2.0**22).astype(np.int64) for s in scales]
    assert max(scales) / output < 1 and 1 << 21 <= max(factors) <= 1 << 22
    scaled = arithmetic.add_fixed(a - zeros[0], b - zeros[1], *factors, np.int64(22))
    golden = arithmetic.finish(scaled, zeros[2] - 128, -128, 127)
    np.testing.assert_array_equal(actual, golden.reshape(shape).transpose(0, 2, 3, 1))


def test_unknown_rounding_names_the_choices() -> None:
    from accelsim.reference import build

    with pytest.raises(InputError, match="fp32, qnnpack"):
        build(None, rounding="exact")  # type: ignore[arg-type]
