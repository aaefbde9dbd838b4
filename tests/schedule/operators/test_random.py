"""Random operators of shapes and options that nobody thought of equal the oracle."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelsim.artifacts import Add, Assemble, Binary, ConvTranspose2d, MatMul, Piece, Region
from accelsim.emit import compile_region
from accelsim.spec.config import CONFIGS
from tests.schedule import layers, oracle
from tests.schedule.test_schedule import assert_stored, run

EDGE8, BASE16, _ = CONFIGS.values()
RANDOM = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 1 << 30)
CONFIG = st.sampled_from([EDGE8, BASE16])


def agree(region: Region, data: st.DataObject, rng: np.random.Generator) -> None:
    """The output of one layer equals the oracle."""
    inputs = {n: layers.random_input(rng, region.tensors[n].shape) for n in region.inputs}
    expected = oracle.run(region, inputs)["t0"]
    program = compile_region(region, data.draw(CONFIG))
    assert_stored(program, run(program, inputs), "t0", expected)


@RANDOM
@given(data=st.data())
def test_random_assemblies_equal_oracle(data: st.DataObject) -> None:
    """Pieces share no index of one axis, and take and place anything along every axis."""
    rng = np.random.default_rng(data.draw(SEEDS))
    out = tuple(data.draw(st.tuples(*(st.integers(1, n) for n in (3, 9, 9, 40)))))
    cut, pieces, shapes = data.draw(st.integers(0, 3)), [], []
    groups = np.array_split(rng.permutation(out[cut]), data.draw(st.integers(1, 3)))
    for i, group in enumerate(groups):
        shape = tuple(data.draw(st.tuples(*(st.integers(1, n) for n in (2, 8, 8, 40)))))
        place, take = [], []
        for axis, size in enumerate(out):
            kept = group if axis == cut else rng.permutation(size)[: rng.integers(0, size + 1)]
            if data.draw(st.booleans()):
                kept = np.sort(kept)
            taken = rng.integers(0, shape[axis], len(kept))
            if data.draw(st.booleans()) and len(kept) <= shape[axis]:
                taken = rng.integers(shape[axis] - len(kept) + 1) + np.arange(len(kept))
            place.append(kept.astype(np.int32))
            take.append(taken.astype(np.int32))
        mode = data.draw(st.sampled_from([None, *layers.MODES]))
        end = layers.end(rng, mode, 0.8) if mode else None
        pieces.append(Piece(i, tuple(take), tuple(place), int(rng.integers(-20, 20)), end))  # type: ignore[arg-type]
        shapes.append(shape)
    op = Assemble(tuple(pieces), int(rng.integers(-128, 128)))
    agree(layers.one(op, out, *shapes), data, rng)  # type: ignore[arg-type]


@RANDOM
@given(data=st.data())
def test_random_products_equal_oracle(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(SEEDS))
    n, h, rows = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 40)))
    k, columns = data.draw(st.tuples(st.integers(1, 70), st.integers(1, 70)))
    transpose_b = data.draw(st.booleans())
    zeros = data.draw(st.tuples(st.integers(-128, 127), st.integers(-128, 127)))
    end = layers.end(rng, data.draw(st.sampled_from(layers.MODES)), 0.02 / np.sqrt(k))
    one = data.draw(st.tuples(st.booleans(), st.booleans()))
    b = (columns, k) if transpose_b else (k, columns)
    batch = (1 if one[0] else n, 1 if one[1] else h)
    op = MatMul(*zeros, transpose_b, end)
    agree(layers.one(op, (n, h, rows, columns), (n, h, rows, k), (*batch, *b)), data, rng)


@RANDOM
@given(data=st.data())
def test_random_transposed_convolutions_equal_oracle(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(SEEDS))
    two = st.tuples(st.integers(1, 4), st.integers(1, 4))
    kernel, stride, dilation, cut = (data.draw(two) for _ in range(4))
    shape = data.draw(st.tuples(*(st.integers(1, n) for n in (2, 8, 8, 30))))
    out = data.draw(st.integers(1, 30))
    size = [
        max(1, (n - 1) * s + (k - 1) * d + 1 - data.draw(st.integers(-3, 2)) - p + 1)
        for n, s, k, d, p in zip(shape[1:3], stride, kernel, dilation, cut, strict=True)
    ]
    weight = rng.integers(-128, 128, (out, *kernel, shape[3])).astype(np.int8)
    bias = rng.integers(-2000, 2000, out).astype(np.int32)
    end = layers.end(rng, data.draw(st.sampled_from(layers.MODES)), 0.003, out)
    zeros = data.draw(st.tuples(st.integers(-128, 127), st.integers(-128, 127)))
    padding = (cut[0] - 1, cut[1] - 1)
    op = ConvTranspose2d(weight, bias, *zeros, end, stride, padding, dilation)
    agree(layers.one(op, (shape[0], size[0], size[1], out), shape), data, rng)


@RANDOM
@given(data=st.data())
def test_random_pairs_equal_oracle(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(SEEDS))
    out = data.draw(st.tuples(*(st.integers(1, n) for n in (3, 20, 20, 40))))
    a, b = (tuple(1 if data.draw(st.booleans()) else n for n in out) for _ in range(2))
    full = tuple(max(x, y) for x, y in zip(a, b, strict=True))
    zeros = [int(z) for z in rng.integers(-128, 128, 2)]
    if data.draw(st.booleans()):
        scales = rng.uniform(0.01, 0.1, 2).astype(np.float32)
        subtract = data.draw(st.booleans())
        op: Add | Binary = Add(*zeros, *scales, np.float32(9), 3, -128, 127, subtract=subtract)
    else:
        kind = data.draw(st.sampled_from(["multiply", "minimum", "maximum"]))
        channels = data.draw(st.sampled_from([1, full[3]]))
        mode = data.draw(st.sampled_from(layers.MODES))
        op = Binary(kind, *zeros, layers.end(rng, mode, 0.05, channels))
    agree(layers.one(op, full, a, b), data, rng)  # type: ignore[arg-type]
