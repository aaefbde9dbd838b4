"""Operators beyond what one field or buffer holds are exact or refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accelsim.artifacts import (
    Binary,
    ConvTranspose2d,
    LayerOp,
    Lookup,
    MatMul,
    PRelu,
    Region,
    Requantize,
    Shape4,
    Transpose,
)
from accelsim.errors import ModelError
from accelsim.schedule import schedule
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.operators.test_movement import box, concat, gather
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
LARGE = replace(BASE16, name="large", lanes=8, act_bank_rows=16384, wgt_rows=65536, acc_rows=16384)
LARGE = replace(LARGE, par_rows=16384)
RNG = np.random.default_rng(41)
END = Requantize(np.array([0.01], np.float32), 3, -128, 127)
TABLE = Lookup(RNG.permutation(256).astype(np.uint8).view(np.int8))


def same(op: LayerOp, shape: Shape4, inputs: int = 1) -> Region:
    return layers.one(op, shape, *[shape] * inputs)


def prelu(channels: int) -> PRelu:
    slopes = RNG.uniform(0.01, 0.1, channels).astype(np.float32)
    return PRelu(4, np.float32(0.07), slopes, np.float32(12), 3, -128, 127)


def product(rows: int, k: int, columns: int, transpose_b: bool) -> Region:
    end = replace(END, multiplier=np.array([0.01 / np.sqrt(k)], np.float32))
    b = (columns, k) if transpose_b else (k, columns)
    return layers.one(
        MatMul(1, -1, transpose_b, end), (1, 1, rows, columns), (1, 1, rows, k), (1, 1, *b)
    )


BEYOND = {
    "lookup_of_many_pixels": same(TABLE, (1, 1, 4100, 8)),
    "lookup_of_many_blocks": same(TABLE, (1, 1, 1, 8 * 4100)),
    "rectifier_of_many_pixels": same(prelu(8), (1, 1, 4100, 8)),
    "rectifier_of_many_blocks": same(prelu(8 * 4100), (1, 1, 1, 8 * 4100)),
    "binary_of_many_blocks": same(Binary("multiply", 3, 4, END), (1, 1, 1, 8 * 4100), 2),
    "sum_of_many_rows": layers.one(
        layers.add(RNG), (1, 4100, 2, 8), (1, 4100, 2, 8), (1, 1, 2, 8)
    ),
    "product_of_many_inputs": product(3, 4200, 9, transpose_b=False),
    "product_of_many_outputs": product(3, 9, 4200, transpose_b=True),
    "many_transposed_rows": layers.one(
        Transpose((0, 2, 1, 3)), (1, 2, 4100, 8), (1, 4100, 2, 8)
    ),
    "transposed_channels": layers.one(Transpose((0, 1, 3, 2)), (1, 1, 9, 4100), (1, 1, 4100, 9)),
    "concat_of_many_pixels": concat(3, [(1, 1, 4100, 3), (1, 1, 4100, 7)]),
    "slice_of_many_rows": gather((1, 4200, 1, 16), box([0], (50, 4199), [0], (8, 16))),
}  # fmt: skip


@pytest.mark.parametrize("config", [BASE16, LARGE], ids=lambda c: c.name)
@pytest.mark.parametrize("case", BEYOND)
def test_sizes_beyond_a_field_are_exact(case: str, config: Config) -> None:
    check(BEYOND[case], config)


def far(stride: int) -> ConvTranspose2d:
    weight = np.ones((8, 1, 1, 8), np.int8)
    return ConvTranspose2d(weight, np.zeros(8, np.int32), 0, 0, END, (stride, 1))


WIDE = 1 << 20
REFUSED = {
    "elements lie 20971520 beats apart": layers.one(far(20), (1, 40, WIDE, 8), (1, 2, WIDE, 8)),
    "elements lie 17825792 beats apart": layers.one(
        Transpose((1, 0, 2, 3)), (17, 2, WIDE, 8), (2, 17, WIDE, 8)
    ),
    "elements lie 41943040 beats apart": gather(
        (1, 41, WIDE, 8), box([0], [0, 40], (0, WIDE), (0, 8))
    ),
    r"axes \(0, 2, 1, 3\) of shape \(1, 3, 2, 8\) do not give": layers.one(
        Transpose((0, 2, 1, 3)), (1, 3, 2, 8), (1, 3, 2, 8)
    ),
    r"a product of two activations has one multiplier": layers.one(
        MatMul(0, 0, False, replace(END, multiplier=np.ones(3, np.float32))),
        (1, 1, 2, 3),
        (1, 1, 2, 4),
        (1, 1, 4, 3),
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_instruction_expresses_is_refused_by_name(message: str) -> None:
    with pytest.raises(ModelError, match=f"layer t0: {message}"):
        schedule(REFUSED[message], EDGE8)


@pytest.mark.parametrize(
    ("region", "field"),
    [
        (same(Binary("multiply", 3, 4, END), (1, 3, 3, 9), 2), "act_bank_rows or par_rows"),
        (same(prelu(9), (1, 3, 3, 9)), "act_bank_rows or par_rows"),
        (layers.region((1, 9, 9, 9), layers.pool("max", (9, 9), (1, 1))), "act_bank_rows"),
    ],
)
def test_operators_that_fit_no_buffer_are_refused_by_name(region: Region, field: str) -> None:
    small = replace(EDGE8, name="small", act_banks=2, act_bank_rows=2)
    with pytest.raises(ModelError, match=f"layer t0: .* configuration small; enlarge {field}"):
        schedule(region, small)


def test_parameters_beyond_the_memory_are_refused_by_name() -> None:
    small = replace(EDGE8, name="small", par_rows=4)
    region = concat(3, [(1, 2, 2, 3), (1, 2, 2, 7)], [END, END])
    with pytest.raises(ModelError, match=r"layer t0: .* needs? 4 parameter rows"):
        schedule(region, replace(small, par_rows=2))
