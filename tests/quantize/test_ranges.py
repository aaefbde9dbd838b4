"""What a network's inputs can take, and the values that are drawn for them."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.ops.modules import Builder
from accelsim.quantize.ranges import input_limits, random_inputs, token_limits
from tests.reference.qdq import QdqModule, constant, op
from tests.verify import integer_nets as nets


def test_token_numbers_end_with_the_rows_of_their_table_and_flags_are_0_and_1() -> None:
    module = nets.tokens().qdq
    assert token_limits(module) == {"tokens": (0, nets.WORDS - 1)}
    assert input_limits(module) == {"tokens": (0, nets.WORDS - 1), "mask": (0, 1)}


def test_the_smallest_of_several_tables_limits_a_token() -> None:
    build = Builder()
    ids = build.input("ids", (1, 4), "int32")
    flat = build.emit(op.reshape(ids, (4,)))
    tables = [constant(np.ones((rows, 3)), "float32") for rows in (9, 5, 7)]
    found = [build.emit(op.take(table, flat, axis=0)) for table in tables]
    assert token_limits(build.module(found)) == {"ids": (0, 4)}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantized_inputs_take_the_whole_range_of_their_dtype(dtype: str) -> None:
    module = nets.image(dtype).qdq
    limits = np.iinfo(dtype)
    assert input_limits(module) == {"image": (limits.min, limits.max)}
    drawn = random_inputs(module, 1)["image"]
    assert drawn.dtype == dtype and len(np.unique(drawn)) > 100
    assert np.array_equal(drawn, random_inputs(module, 1)["image"])
    assert not np.array_equal(drawn, random_inputs(module, 2)["image"])


def test_float_inputs_take_what_their_quantize_tells_apart() -> None:
    module = QdqModule(x=(1, 400), y=(1, 400))
    x, y = module.inputs
    q = module.quantize(x, "x", np.float32(0.5), 128)
    out = module.emit(op.add(module.dequantize(q), y))
    found = module.module(out)
    assert input_limits(found) == {"x": (-64, 63.5), "y": (-1, 1)}
    drawn = random_inputs(found, 0)
    assert drawn["x"].dtype == np.float32 and -64 <= drawn["x"].min() < -60
    assert 60 < drawn["x"].max() <= 63.5 and np.abs(drawn["y"]).max() <= 1
