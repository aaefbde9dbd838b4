"""Bilinear resizes: runs of outputs, weights beyond a byte, and every map equal to the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.artifacts import Interpolation, Region, Resize2d, Shape4
from accelsim.schedule import schedule
from accelsim.schedule.operators.resize import runs_of
from accelsim.schedule.summed_weights import WEIGHT_ZERO_POINT, summed
from accelsim.spec.config import CONFIGS, Config
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
CONFIGURATIONS = pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)


def line(first: list[int], behind: list[int], total: int) -> Interpolation:
    """An axis by its pixels and the weights of the second ones."""
    weights = [(total - one, one) for one in behind]
    return Interpolation(np.array(first, np.int32), np.array(weights, np.int32))


def halves(size: int, factor: int) -> Interpolation:
    """A factor about pixel centres, in whole numbers of 1 / (2 · factor)."""
    unit = 2 * factor
    places = np.clip(2 * np.arange(size * factor) + 1 - factor, 0, (size - 1) * unit)
    return line((places // unit).tolist(), (places % unit).tolist(), unit)


def resized(rows: Interpolation, columns: Interpolation, shape: Shape4, mode: str) -> Region:
    """One layer."""
    rng = np.random.default_rng([*shape, len(rows.first)])
    end = layers.end(rng, mode, 1.5 / (rows.total * columns.total))
    out = (shape[0], len(rows.first), len(columns.first), shape[3])
    return layers.one(Resize2d(rows, columns, -7, end), out, shape)


def test_factor_two_has_three_runs_an_axis() -> None:
    found = [
        (r.first, r.step, r.count, r.source, r.stride, r.weights) for r in runs_of(halves(5, 2))
    ]
    assert found == [
        (0, 9, 2, 0, 4, (4,)),
        (1, 2, 4, 0, 1, (3, 1)),
        (2, 2, 4, 0, 1, (1, 3)),
    ]


def test_every_output_is_in_one_run() -> None:
    axis = line([0, 0, 0, 1, 2, 2, 3, 3], [0, 0, 3, 0, 3, 5, 0, 0], 8)
    places = [
        (run.first + i * run.step, run.source + i * run.stride, run.weights)
        for run in runs_of(axis)
        for i in range(run.count)
    ]
    expected = [
        (i, int(axis.first[i]), (8 - b, b) if b else (8,))
        for i, b in enumerate(axis.weight[:, 1].tolist())
    ]
    assert sorted(places) == expected


@pytest.mark.parametrize(("largest", "passes"), [(1, 1), (255, 1), (256, 2), (4080, 16)])
def test_weights_are_sums_of_bytes(largest: int, passes: int) -> None:
    weight = np.array([[largest, 1], [0, largest // 2]], np.int32)
    parts = summed(weight, 3).summands
    assert len(parts) == passes
    total = sum(part.weight.astype(np.int64) - WEIGHT_ZERO_POINT for part in parts)
    assert isinstance(total, np.ndarray)
    np.testing.assert_array_equal(total[..., 0], np.broadcast_to(weight, (3, 2, 2)))


@CONFIGURATIONS
@pytest.mark.parametrize("mode", layers.MODES)
def test_factor_two_equals_oracle_in_every_mode(mode: str, config: Config) -> None:
    check(resized(halves(3, 2), halves(4, 2), (2, 3, 4, 11), mode), config)


@CONFIGURATIONS
@pytest.mark.parametrize("factors", [(4, 3), (1, 8), (16, 16)], ids=str)
def test_other_factors_equal_oracle(factors: tuple[int, int], config: Config) -> None:
    rows, columns = (halves(2, factor) for factor in factors)
    check(resized(rows, columns, (1, 2, 2, 9), "fp32"), config)


@CONFIGURATIONS
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (line([0, 40, 79], [3, 1, 0], 5), line([1], [2], 3)),
        (line([0, 0, 0, 0], [0, 0, 0, 0], 1), line([0, 1, 2, 3], [1, 1, 1, 0], 2)),
        (line([5, 3, 1], [1, 1, 1], 4), line([0, 0, 0, 0, 0], [6, 5, 4, 3, 2], 7)),
    ],
    ids=["far", "spread", "backwards"],
)
def test_other_maps_equal_oracle(
    rows: Interpolation, columns: Interpolation, config: Config
) -> None:
    check(resized(rows, columns, (1, 80, 4, 9), "half_even"), config)


def test_a_tap_alone_loads_only_its_pixels() -> None:
    """Corners of a large map take a beat each."""
    corner = line([0, 79], [0, 0], 1)
    plan = schedule(resized(corner, corner, (1, 80, 80, 8), "fp32"), EDGE8)
    loads = [s.values for s in plan.steps if s.instruction == "load" and s.values["memory"] == 0]
    assert sum(v["count0"] * v["count1"] * v["count2"] for v in loads) == 4
