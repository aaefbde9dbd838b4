"""In which precision LiteRT's kernels derive a multiplier: seen where the precisions differ.

Each case is searched for: scales with which float32 and double precision round some value to
different steps. The kernel's own output says which one it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from accelsim.peers import tflite_rules as rules
from accelsim.peers.definition import requantize
from accelsim.peers.litert_model import TfliteTensor, tflite_model, tflite_outputs

Variants = Callable[[float, float, float], list[float]]
PRODUCTS = np.unique(np.outer(np.arange(-127, 128), np.arange(-127, 128)))


def variants(a: float, b: float, to: float) -> list[float]:
    """All double, the product in float32, all float32."""
    product = np.float32(a) * np.float32(b)
    return [a * b / to, float(product) / to, float(product / np.float32(to))]


def results(real: float, accumulators: np.ndarray, mode: str = "tflite") -> np.ndarray:
    """int8 of accumulators."""
    return requantize(accumulators[:, None], rules.requantize(mode, [real], 0))[:, 0]


def drawn(rng: np.random.Generator) -> tuple[float, float, float]:
    a, b = (float(np.float32(np.exp(rng.uniform(-5, -2)))) for _ in range(2))
    return a, b, float(np.float32(a * b * rng.uniform(80, 150)))


def factors(products: np.ndarray) -> np.ndarray:
    """(count, 2) int8 numbers with these products."""
    pairs = [
        next((x, p // x) for x in range(1, 128) if p % x == 0 and abs(p // x) < 128)
        for p in products.tolist()
    ]
    return np.array(pairs, np.int8).reshape(-1, 2)


def multiplied(
    operator: str, a: np.ndarray, b: np.ndarray, scales: tuple[float, ...]
) -> np.ndarray:
    """Products of pairs by MUL or BATCH_MATMUL."""
    options = "MulOptions" if operator == "MUL" else "BatchMatMulOptions"
    shape = (a.size, 1, 1, 1)
    sides = [TfliteTensor(shape, (scale,), 0) for scale in scales]
    model = tflite_model(operator, sides[:2], sides[2:], options, version=2)
    return tflite_outputs(model, a.reshape(shape), b.reshape(shape))[0].ravel()


@pytest.mark.parametrize(
    ("operator", "rule"),
    [("MUL", rules.product_multiplier), ("BATCH_MATMUL", rules.matmul_multiplier)],
)
def test_precision_of_products_is_as_the_kernel_has_it(
    operator: str, rule: Callable[[float, float, float], float]
) -> None:
    rng, told = np.random.default_rng(1), {0: 0, 1: 0, 2: 0}
    for _ in range(400):
        scales = drawn(rng)
        real, others = rule(*scales), variants(*scales)
        differ = np.zeros(PRODUCTS.size, bool)
        for other in others:
            differ |= results(real, PRODUCTS) != results(other, PRODUCTS)
        if not differ.any():
            continue
        pairs = factors(PRODUCTS[differ])
        found = multiplied(operator, pairs[:, 0], pairs[:, 1], scales)
        assert np.array_equal(found, results(real, PRODUCTS[differ]))
        for number, other in enumerate(others):
            told[number] += int(np.sum(found != results(other, PRODUCTS[differ])))
    assert sum(count > 0 for count in told.values()) == 2  # the other two precisions


def connected(biases: np.ndarray, scales: tuple[float, float, float]) -> np.ndarray:
    """FULLY_CONNECTED whose accumulators are its biases."""
    source, weight, output = scales
    step = float(np.float32(source) * np.float32(weight))
    ones = np.ones((biases.size, 1), np.int8)
    model = tflite_model(
        "FULLY_CONNECTED",
        [
            TfliteTensor((1, 1), (source,), 0),
            TfliteTensor(ones.shape, (weight,), values=ones),
            TfliteTensor(biases.shape, (step,), 0, "int32", values=biases),
        ],
        [TfliteTensor((1, biases.size), (output,), 0)],
        "FullyConnectedOptions",
        version=5,
    )
    return tflite_outputs(model, np.zeros((1, 1), np.int8))[0].ravel()


def test_fully_connected_takes_the_quotient_in_double_precision() -> None:
    rng, told = np.random.default_rng(2), 0
    for _ in range(40):
        source, weight = (float(np.float32(np.exp(rng.uniform(-7, -6)))) for _ in range(2))
        output = float(np.float32(rng.uniform(0.5, 2)))
        (real,) = rules.conv_multipliers(source, [weight], output)
        other = variants(source, weight, output)[1]
        halves = np.floor((rng.integers(60, 120, 300) + 0.5) / real).astype(np.int64)
        near = np.unique(halves[:, None] + np.arange(-2, 3))
        differ = results(real, near, "half_away") != results(other, near, "half_away")
        if differ.any():
            found = connected(near[differ].astype(np.int32), (source, weight, output))
            steps = near[differ] * real  # by the double itself: accumulators have 27 bits here
            assert np.array_equal(found, np.copysign(np.floor(np.abs(steps) + 0.5), steps))
            told += int(differ.sum())
    assert told > 100


def test_fully_connected_rounds_halves_away_from_zero() -> None:
    halves = np.arange(-99, 100, 2).astype(np.int32)
    found = connected(halves, (0.5, 0.5, 0.5))
    assert np.array_equal(found, np.copysign((np.abs(halves) + 1) // 2, halves))
