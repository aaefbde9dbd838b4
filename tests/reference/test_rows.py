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


@pytest.mark.parametrize("along", [(40, 19), (1, 19)], ids=str)
def test_masked_softmax_equals_the_specification_of_what_is_kept(along: tuple[int, ...]) -> None:
    scale = np.float32(0.13)
    reference = layer(
        "y",
        [Input((40, 19), scale, 100), Input(along, np.float32(2.0**64), 255)],
        lambda module, x, mask: module.emit(
            relax.op.nn.softmax(module.emit(relax.op.add(x, mask)), axis=-1)
        ),
        1 / 256,
        0,
    )
    found = reference.network.layer("y")
    assert (found.kind, found.op) == ("integer", "masked_softmax")
    rng = np.random.default_rng(6)
    scores, mask = rows(rng, (40, 19)), rng.choice(np.array([127, 126, -128], np.int8), along)
    mask[0] = -128
    table = np.asarray(exponentials(float(scale)))
    golden = np.full(scores.shape, -128, np.int8)
    for row, keeps, result in zip(
        scores, np.broadcast_to(mask == 127, (40, 19)), golden, strict=True
    ):
        inside = keeps & (row.astype(int) > row[keeps].max(initial=-128).astype(int) - 255)
        result[inside] = normalization.softmax(row[inside], table) if inside.any() else 0
        if not keeps.any():
            result[:] = normalization.softmax(np.zeros(19, np.int8), table)
    stored = [
        one.reshape(size) for one, size in zip((scores, mask), found.input_shapes, strict=True)
    ]
    np.testing.assert_array_equal(reference.run_layer("y", tuple(stored)).reshape(40, 19), golden)


@pytest.mark.parametrize(("scale", "zero"), [(1 / 255, 0), (1 / 128, 0), (1 / 256, 77)])
def test_softmax_of_another_output_is_rounded_twice(scale: float, zero: int) -> None:
    reference = layer(
        "y",
        [Input((40, 9), np.float32(0.1), 7)],
        lambda module, x: module.emit(relax.op.nn.softmax(x, axis=-1)),
        scale,
        zero,
    )
    stored = rows(np.random.default_rng(3), (40, 9))
    stored = stored.reshape(reference.network.layer("y").input_shapes[0])
    table = exponentials(float(np.float32(0.1)))
    shares = normalization.softmax(stored, np.asarray(table)).astype(np.float64) + 128
    inverse = np.float32(1) / np.float32(scale)
    steps = np.rint((shares / 256).astype(np.float32) * inverse)
    expected = np.minimum(steps + zero - 128, 127)
    np.testing.assert_array_equal(reference.run_layer("y", (stored,)), expected)


def test_softmax_of_an_output_much_finer_is_left_to_the_host() -> None:
    reference = layer(
        "y",
        [Input((2, 9), np.float32(0.1), 7)],
        lambda module, x: module.emit(relax.op.nn.softmax(x, axis=-1)),
        1 / 1024,
        0,
    )
    assert reference.network.layer("y").kind == "host"


@pytest.mark.parametrize("shape", [(30, 50), (2, 9, 31), (2, 3, 5, 12), (3, 1024), (9, 1), (9, 2)])
@pytest.mark.parametrize("scale", [2.0**-8, 0.04, 3.0])
def test_layer_norm_equals_the_specification(shape: tuple[int, ...], scale: float) -> None:
    rng = np.random.default_rng(shape[-1])
    gain, offset = (rng.normal(0, 1, shape[-1]).astype(np.float32) for _ in range(2))
    words = [relax.const(one, "float32") for one in (gain, offset)]
    reference = layer(
        "y",
        [Input(shape, np.float32(scale), 100)],
        lambda module, x: module.emit(relax.op.nn.layer_norm(x, *words, axes=[-1], epsilon=1e-3)),
        0.05,
        120,
    )
    place = reference.network.layer("y")
    assert place.kind == "integer"
    stored = rows(rng, place.input_shapes[0])
    gains, step = gain.astype(np.float64) / float(np.float32(0.05)), float(np.float32(0.05))
    bits = 31 - int(np.frexp(np.abs(gains).max())[1])
    bits = min(bits, 24)
    units = 1e-3 * shape[-1] ** 2 / float(np.float32(scale)) ** 2
    assert units < 2**31  # then epsilon needs no shift
    golden = normalization.layer_norm(
        stored,
        np.rint(gains * 2.0**bits).astype(np.int64),
        np.rint(offset.astype(np.float64) / step * 2**16).astype(np.int64),
        bits,
        round(units),
        (120 - 128, -128, 127),
    )
    np.testing.assert_array_equal(reference.run_layer("y", (stored,)), golden)
