"""The reference's requantization, written anew in TVM, against the specification's definition."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.reference.graph import read_network
from accelsim.reference.integer import build_network
from accelsim.spec import arithmetic
from tests.reference.qdq import QdqModule

COUNT = 20000
LIMIT = 2**31 - (1 << 16)  # what the proof against overflow admits here


def accumulators(rng: np.random.Generator, multiplier: np.float32) -> np.ndarray:
    """int32: full range, around 2^24 where floats lose a bit, and where the product is a tie."""
    reach = min(LIMIT, 200 / float(multiplier))
    spread = rng.uniform(-1, 1, COUNT // 2) * reach
    powers = np.array([2**bit + off for bit in range(8, 31) for off in (-1, 0, 1, 2)])
    edge = np.concatenate([powers, -powers, [LIMIT, -LIMIT, 0]])
    ties = (rng.integers(-128, 128, COUNT - spread.size - edge.size) + 0.5) / float(multiplier)
    ties = np.clip(ties, -LIMIT, LIMIT)
    return np.concatenate([spread.astype(np.int64), edge, np.rint(ties).astype(np.int64)])


@pytest.mark.parametrize("exponent", [-24, -20, -16, -8, -1, 0, 3])
def test_requantization_equals_the_specification(exponent: int, seed: int) -> None:
    """A linear layer of one input: the bias gives the high bits, the weight the low ones."""
    rng = np.random.default_rng([seed, exponent + 40])
    scale = np.float32(2.0**-exponent * rng.choice([1.0, rng.uniform(1, 2)]))
    multiplier = np.float32(1) / scale
    wanted = accumulators(rng, multiplier)
    low = (wanted + 128) % 256 - 128
    module = QdqModule(x=(1, 1))
    source = module.quantize(module.inputs[0], "in", np.float32(1), 4)
    weight = module.weight(low.reshape(COUNT, 1), np.ones(1, np.float32), np.zeros(1, np.int64))
    value = module.linear(module.dequantize(source), weight, (wanted - low).astype(np.float32))
    result = module.quantize(value, "fc", scale, 131)
    reference = build_network(read_network(module.module(module.dequantize(result))))
    actual = reference.run_layer("fc", (np.full((1, 1, 1, 1), 5 - 128, np.int8),))
    golden = arithmetic.finish(arithmetic.scale_fp32(wanted, multiplier), 3, -128, 127)
    np.testing.assert_array_equal(actual.ravel(), golden)
    assert np.unique(golden).size > 50 or exponent > -8
