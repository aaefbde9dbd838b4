"""Convolution and pooling in every rounding mode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accelsim.artifacts import Pool2d
from accelsim.errors import ModelError
from accelsim.schedule import schedule
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CONFIGURATIONS = pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)


@CONFIGURATIONS
@pytest.mark.parametrize("mode", layers.MODES[1:])
@pytest.mark.parametrize("channels", [1, 7, 9, 40])
def test_convolution_in_integer_modes_equals_oracle(
    mode: str, channels: int, config: Config
) -> None:
    rng = np.random.default_rng(channels)
    op = layers.conv(rng, 20, channels, (3, 3), padding=(1, 1, 1, 1))
    op = replace(op, requantize=layers.end(rng, mode, 0.001, channels))
    check(layers.region((1, 9, 10, 20), op), config)


@CONFIGURATIONS
@pytest.mark.parametrize("mode", layers.MODES[1:])
@pytest.mark.parametrize("channels", [1, 70])
def test_sums_in_integer_modes_equal_oracle(mode: str, channels: int, config: Config) -> None:
    rng = np.random.default_rng(channels)
    for each in (1, channels):
        end = layers.end(rng, mode, 0.3, each)
        op = Pool2d("sum", (3, 2), (2, 1), (1, 0, 1, 1), -9, end)
        check(layers.region((2, 9, 11, channels), op), config)


@CONFIGURATIONS
@pytest.mark.parametrize("mode", layers.MODES)
@pytest.mark.parametrize("kernel", [(3, 3), (4, 2), (9, 9)])
def test_averages_over_inside_elements_equal_oracle(
    mode: str, kernel: tuple[int, int], config: Config
) -> None:
    rng = np.random.default_rng(5)
    counts = range(1, kernel[0] * kernel[1] + 1)
    by_count = tuple((n, replace(layers.end(rng, mode, 2 / n), zero_point=3)) for n in counts)
    pads = (kernel[0] // 2, kernel[1] // 2)
    op = Pool2d("sum", kernel, (2, 1), pads * 2, 7, None, by_count=by_count)
    facts = check(layers.region((2, 11, 9, 19), op), config).layers[0].facts
    assert facts["regions"] > 4


@CONFIGURATIONS
def test_averages_with_a_multiplier_a_channel_equal_oracle(config: Config) -> None:
    rng = np.random.default_rng(6)
    by_count = tuple((n, layers.end(rng, "half_away", 2 / n, 12)) for n in range(1, 10))
    for shape in ((2, 5, 7, 12), (1, 30, 31, 12)):
        op = Pool2d("sum", (3, 3), (1, 1), (1, 1, 1, 1), 7, None, by_count=by_count)
        check(layers.region(shape, op), config)


def test_averages_over_long_windows_equal_oracle() -> None:
    rng = np.random.default_rng(7)
    counts = sorted({h * w for h in range(1, 17) for w in range(1, 17)})
    by_count = tuple((n, layers.end(rng, "tflite", 2 / n, 9)) for n in counts)
    op = Pool2d("sum", (16, 16), (4, 5), (7, 8, 7, 6), 7, None, by_count=by_count)
    check(layers.region((1, 17, 19, 9), op), EDGE8)


def test_a_count_without_requantization_is_refused_by_name() -> None:
    end = layers.end(np.random.default_rng(1), "fp32", 0.3)
    op = Pool2d("sum", (3, 3), (1, 1), (1, 1, 1, 1), 0, None, by_count=((9, end), (6, end)))
    with pytest.raises(ModelError, match="layer t0: windows of 4 elements occur"):
        schedule(layers.region((1, 5, 5, 8), op), EDGE8)


@pytest.mark.parametrize("shift", [-33, 32])
def test_a_shift_beyond_its_word_is_refused_by_name(shift: int) -> None:
    end = replace(
        layers.end(np.random.default_rng(1), "half_up", 0.3), shift=np.array([shift], np.int32)
    )
    op = Pool2d("sum", (1, 1), (1, 1), (0, 0, 0, 0), 0, end)
    with pytest.raises(ModelError, match=f"layer t0: a shift is {shift}, the limits"):
        schedule(layers.region((1, 5, 5, 8), op), EDGE8)


def test_a_mode_that_is_not_built_is_refused_by_name() -> None:
    end = replace(layers.end(np.random.default_rng(1), "half_up", 0.3), mode="floor")
    op = Pool2d("sum", (1, 1), (1, 1), (0, 0, 0, 0), 0, end)
    with pytest.raises(ModelError, match="layer t0: rounding mode 'floor' is not built; use fp32,"):
        schedule(layers.region((1, 5, 5, 8), op), EDGE8)
