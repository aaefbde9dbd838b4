"""Tensor expressions of every rounding mode, on LLVM, against the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te

from accelsim.artifacts import Requantize
from accelsim.legalize.expressions import Activation, requantized
from accelsim.legalize.layout import nhwc
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from accelsim.spec import arithmetic
from tests.legalize.test_codec import same

CHANNELS = 64
EDGES = [-(2**31), -(2**31) + 1, -(2**30), -3, -2, -1, 0, 1, 2, 3, 2**30 - 1, 2**31 - 1]


def accumulators() -> np.ndarray:
    """(rows, 64) int32: edges of the type, small values, any values."""
    generator = np.random.default_rng(3)
    rows = [np.full(CHANNELS, edge) for edge in EDGES]
    rows += [generator.integers(-500, 500, CHANNELS) for _ in range(20)]
    rows += [generator.integers(-(2**31), 2**31, CHANNELS) for _ in range(20)]
    return np.array(rows, np.int64).astype(np.int32)


def requantize_of(mode: str) -> Requantize:
    """Multipliers of every size, powers of two among them, with every shift."""
    generator = np.random.default_rng(4)
    if mode == "fp32":
        scales = np.exp2(generator.uniform(-30, 2, CHANNELS)).astype(np.float32)
        scales[::4] = np.exp2(np.arange(-16, 0)).astype(np.float32)
        return Requantize(scales, 5, -120, 100)
    mantissa = generator.integers(1 << 30, (1 << 31) - 1, CHANNELS).astype(np.int32)
    mantissa[::3] = 1 << 30
    shift = np.arange(-32, 32).astype(np.int32)
    return Requantize(mantissa, 5, -120, 100, mode, shift)


def on_llvm(values: np.ndarray, end: Requantize) -> np.ndarray:
    """`requantized` of (rows, channels), compiled by TVM."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(values.shape, "int32"))

    def expression(x: Any, multiplier: Any, shift: Any, numbers: Any) -> Any:
        limits = (numbers(0), numbers(1), numbers(2))
        mirrored = Requantize(multiplier, *limits, end.mode, shift)
        return te.compute(x.shape, lambda n, c: requantized(x(n, c), mirrored, c))

    shift = np.zeros(CHANNELS, np.int32) if end.shift is None else end.shift
    numbers = np.array([end.zero_point, end.clamp_min, end.clamp_max], np.int32)
    constants = [relax.const(one) for one in (end.multiplier, shift, numbers)]
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.call_te(expression, x, *constants))
        builder.emit_func_output(y)
    machine = machine_of(builder.get(), UNOPTIMIZED)
    return np.asarray(machine["main"](tvm.runtime.tensor(values)).numpy())


@pytest.mark.parametrize("mode", arithmetic.MODES)
def test_requantization_equals_the_specification(mode: str) -> None:
    values, end = accumulators(), requantize_of(mode)
    shift = np.zeros(CHANNELS, np.int32) if end.shift is None else end.shift
    words = end.multiplier.view(np.int32)
    scaled = arithmetic.scale(mode, values, words, shift)
    expected = arithmetic.finish(scaled, end.zero_point, end.clamp_min, end.clamp_max)
    assert len(np.unique(expected)) > 64
    assert same(on_llvm(values, end), expected)


def test_layout_names_the_axes_of_a_shape() -> None:
    assert nhwc((2, 3, 5, 7), "nchw") == (2, 5, 7, 3)
    assert nhwc((2, 3), "nc") == (2, 1, 1, 3)
    assert nhwc((2, 7, 3), "nwc") == (2, 1, 7, 3)


def test_activation_is_read_by_its_axes_in_any_layout() -> None:
    tensor = te.placeholder((2, 7, 3), "int8", name="x")
    x = Activation(tensor, "nwc")
    assert x.shape == (2, 1, 7, 3)
    assert [int(index) for index in x(1, 0, 6, 2).args[1:]] == [1, 6, 2]
