"""Layers beyond what one field expresses are exact or refused by name, never encoded wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import Region, Shape4
from accelsim.errors import ModelError
from accelsim.schedule import limits, schedule
from accelsim.schedule.window import tile_sizes
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.isa import BY_NAME
from tests.schedule import layers
from tests.schedule.test_schedule import check

EDGE8, BASE16, _ = CONFIGS.values()
RNG = np.random.default_rng(21)


def conv(shape: Shape4, out: int, kernel: tuple[int, int], **options: Any) -> Region:
    return layers.region(shape, layers.conv(RNG, shape[3], out, kernel, **options))


def depthwise(shape: Shape4, kernel: tuple[int, int], **options: Any) -> Region:
    return conv(shape, shape[3], kernel, depthwise=True, **options)


def pool(shape: Shape4, *window: Any) -> Region:
    return layers.region(shape, layers.pool(*window))


EXACT = {
    "tall": conv((1, 4097, 1, 9), 8, (3, 1), padding=(1, 0, 1, 0)),
    "tall_stride": conv((1, 8300, 1, 9), 8, (2, 1), stride=(2, 1)),
    "wide": conv((1, 1, 5000, 8), 8, (1, 3), padding=(0, 1, 0, 1)),
    "many_channels": conv((1, 1, 2, 3000), 16, (1, 1)),
    "many_outputs": conv((1, 1, 1, 8), 3000, (1, 1)),
    "kernel_32": conv((1, 33, 33, 9), 3, (32, 32)),
    "stride_33": conv((1, 70, 70, 9), 5, (3, 3), stride=(33, 33)),
    "stride_64_by_1": conv((1, 5, 200, 9), 5, (3, 3), stride=(1, 64)),
    "dilation_33": conv((1, 70, 70, 9), 5, (3, 3), dilation=(33, 33)),
    "dilation_1_by_40": conv((1, 5, 90, 9), 5, (3, 3), dilation=(1, 40)),
    "largest_padding": conv((1, 3, 3, 9), 2, (1, 2), padding=(0, 2047, 0, 0)),
    "batch_70": conv((70, 3, 3, 9), 5, (3, 3), padding=(1, 1, 1, 1)),
    "kernel_beyond_the_image": conv((1, 2, 2, 9), 5, (7, 7), padding=(3, 3, 3, 3)),
    "depthwise_stride_40": depthwise((1, 90, 90, 9), (3, 3), stride=(40, 40)),
    "depthwise_dilation_40": depthwise((1, 90, 90, 9), (3, 3), dilation=(40, 40)),
    "depthwise_kernel_40": depthwise((1, 45, 45, 9), (40, 40)),
    "max_stride_40": pool((1, 90, 90, 9), "max", (2, 2), (40, 40)),
    "max_tall": pool((1, 4300, 1, 9), "max", (2, 1), (1, 1)),
    "sum_stride_40": pool((1, 90, 90, 9), "sum", (2, 2), (40, 40)),
    "sum_of_a_whole_map": pool((1, 56, 56, 9), "sum", (56, 56), (56, 56)),
    "add_tall": layers.region((1, 4097, 1, 9), layers.add(RNG)),
}


@pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
@pytest.mark.parametrize("case", EXACT)
def test_sizes_beyond_a_field_are_exact(case: str, config: Config) -> None:
    check(EXACT[case], config)


@pytest.mark.parametrize("count", [4096, 4100])
def test_one_tile_has_at_most_4095_input_pixels_or_blocks(count: int) -> None:
    large = replace(BASE16, name="large", act_bank_rows=16384, wgt_rows=65536, acc_rows=16384)
    large = replace(large, lanes=8, par_rows=16384)
    check(conv((1, 1, count, 8), 8, (1, 2), stride=(1, 2)), large)
    check(pool((1, 1, count, 8), "max", (1, 2), (1, 1)), large)
    check(pool((1, 1, 1, 8 * count), "max", (1, 1), (1, 1)), large)
    check(layers.region((1, 1, 1, 8 * count), layers.add(RNG)), large)


REFUSED = {
    "layer t0: a padding of 2049 exceeds 2048": conv(
        (1, 3, 3, 9), 2, (1, 2), padding=(0, 2049, 0, 0)
    ),
    "layer t0: a padding of 3000 exceeds 2047": conv(
        (1, 3, 3, 9), 2, (1, 2), padding=(0, 0, 0, 3000)
    ),
    r"layer t0: tensor x of shape \(0, 3, 3, 9\) is empty": layers.region(
        (0, 3, 3, 9), layers.add(RNG)
    ),
}


@pytest.mark.parametrize("config", [EDGE8, BASE16], ids=lambda c: c.name)
@pytest.mark.parametrize("message", REFUSED)
def test_what_no_instruction_expresses_is_refused_by_name(message: str, config: Config) -> None:
    with pytest.raises(ModelError, match=message):
        schedule(REFUSED[message], config)


@pytest.mark.parametrize("field", ["act_bank_rows", "par_rows"])
def test_an_addition_that_fits_no_buffer_is_refused_by_name(field: str) -> None:
    small = replace(EDGE8, name="small", act_banks=2, **{field: 2})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"layer t0: not even one pixel .* configuration small"):
        schedule(layers.region((1, 3, 3, 9), layers.add(RNG)), small)


@pytest.mark.parametrize("value", [0.0, -1.0, 2.0**-101, 2.0**101, float("inf"), float("nan")])
def test_a_multiplier_that_hardware_rounds_otherwise_is_refused_by_name(value: float) -> None:
    conv_op, add_op = layers.conv(RNG, 9, 9, (1, 1)), layers.add(RNG)
    multiplier = conv_op.requantize.multiplier.copy()
    multiplier[3] = value
    wrong = (
        replace(conv_op, requantize=replace(conv_op.requantize, multiplier=multiplier)),
        replace(add_op, fixed=None, b_scale=np.float32(value)),
    )
    for op in wrong:
        with pytest.raises(ModelError, match="layer t0: a multiplier is"):
            schedule(layers.region((1, 3, 3, 9), op), EDGE8)


def test_limits_are_those_of_the_instruction_table() -> None:
    bounds = {f.name: f.bounds(EDGE8) for name in ("conv", "load") for f in BY_NAME[name].fields}
    for name in ("in_h", "in_w", "out_h", "out_w", "in_blocks", "out_blocks", "count1", "count2"):
        assert bounds[name][1] == limits.MAX_COUNT
    for name in ("stride_h", "stride_w", "dilation_h", "dilation_w"):
        assert bounds[name][1] == limits.MAX_STEP
    for name in ("kernel_h", "kernel_w"):
        assert bounds[name][1] == limits.MAX_KERNEL
    for name in ("origin_h", "origin_w"):
        assert bounds[name] == (limits.MIN_ORIGIN, limits.MAX_ORIGIN)
    for name in ("dram_stride1", "dram_stride2"):
        assert bounds[name][1] == limits.MAX_DRAM_STRIDE


@pytest.mark.parametrize("total", [1, 2, 3, 10, 37, 64, 97, 1000, 4097])
def test_tile_sizes_are_all_quotients_rounded_up(total: int) -> None:
    expected = {-(-total // parts) for parts in range(1, total + 1)}
    assert tile_sizes(total) == sorted(expected, reverse=True)
