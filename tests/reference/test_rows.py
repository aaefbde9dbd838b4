"""Operators over rows of channels equal the specification, wherever the channels are."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax

from accelsim.legalize.exponential import exponentials
from accelsim.spec import normalization
from tests.reference.single import Input, layer

SHAPES = [((40, 77), -1), ((1, 13, 5, 6), 1), ((2, 9, 31), -1), ((2, 19, 7), 1)]
LONG = ((3, 4096), -1)


def rows(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform ones, and ones within a few steps."""
    values = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.5, values, values % 7 + 20).astype(np.int8)


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, LONG])
@pytest.mark.parametrize("scale", [0.03, 0.4])
def test_softmax_equals_the_specification(shape: tuple[int, ...], axis: int, scale: float) -> None:
    reference = layer(
        "y",
        [Input(shape, np.float32(scale), 100)],
        lambda module, x: module.emit(relax.op.nn.softmax(x, axis=axis)),
        1 / 256,
        0,
    )
    assert reference.network.layer("y").kind == "integer"
    last = np.moveaxis(rows(np.random.default_rng(3), shape), axis, -1)
    stored = last.reshape(reference.network.layer("y").input_shapes[0])
    table = exponentials(float(np.float32(scale)))
    golden = normalization.softmax(stored, np.asarray(table))
    np.testing.assert_array_equal(reference.run_layer("y", (stored,)), golden)


@pytest.mark.parametrize(("scale", "zero"), [(1 / 128, 0), (1 / 256, 1)])
def test_softmax_of_another_output_is_left_to_the_host(scale: float, zero: int) -> None:
    reference = layer(
        "y",
        [Input((2, 9), np.float32(0.1), 7)],
        lambda module, x: module.emit(relax.op.nn.softmax(x, axis=-1)),
        scale,
        zero,
    )
    assert reference.network.layer("y").kind == "host"
