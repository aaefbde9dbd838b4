"""Maxima over windows that exceed an instruction or a buffer."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.artifacts import Pool2d, Shape4
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CASES: dict[str, tuple[Shape4, Pool2d]] = {
    "whole_map": ((1, 24, 24, 12), layers.pool("max", (24, 24), (1, 1))),
    "large_map": ((2, 70, 80, 33), layers.pool("max", (70, 80), (1, 1))),
    "sliding": ((2, 20, 26, 30), layers.pool("max", (19, 23), (2, 3), (9, 2, 8, 11))),
    "tall": ((1, 45, 2, 9), layers.pool("max", (40, 2), (1, 1))),
    "long_row": ((2, 1, 3000, 20), layers.pool("max", (1, 3000), (1, 1))),
    "in_padding": ((1, 5, 5, 8), layers.pool("max", (33, 33), (20, 20), (33, 33, 20, 20))),
}


def peaks(shape: Shape4) -> np.ndarray:
    """Low noise, and one peak a channel and image: a maximum that misses a piece is seen."""
    rng = np.random.default_rng(2)
    values = rng.integers(-128, -90, shape).astype(np.int8)
    n, h, w, c = shape
    image, channel = np.indices((n, c))
    values[image, rng.integers(0, h, (n, c)), rng.integers(0, w, (n, c)), channel] = rng.integers(
        -80, 119, (n, c)
    )
    return values


@pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
@pytest.mark.parametrize("case", CASES)
def test_maxima_of_long_windows_equal_oracle(case: str, config: Config) -> None:
    shape, op = CASES[case]
    check(layers.region(shape, op), config, inputs={"x": peaks(shape)})
