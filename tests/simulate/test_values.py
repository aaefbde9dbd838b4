"""Every instruction on random legal fields equals an oracle with Python loops, bit for bit."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from accelsim.programs.drawing import DRAW, legal, put_parameters, random_memory
from accelsim.simulate.decoded import make_op
from accelsim.simulate.digests import digest_rows
from accelsim.simulate.execute import Executor
from accelsim.simulate.footprint import footprint
from accelsim.simulate.matrix import exact_product
from accelsim.simulate.memory import Memory
from accelsim.simulate.scaling import add_float, scale_float
from accelsim.spec import arithmetic
from accelsim.spec.config import CONFIGS
from accelsim.spec.digest import digest
from tests.simulate.oracle import ORACLE, transfer

CASES = {"edge8": 25, "base16": 10, "wide32": 4}


def assert_equal(actual: Memory, expected: Memory) -> None:
    for name in ("act", "wgt", "par", "tab", "acc"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), name)
    for base, data in expected.dram.items():
        np.testing.assert_array_equal(actual.dram[base], data, f"base register {base}")


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", DRAW)
def test_random_fields_give_what_the_oracle_computes(name, config, seed):
    rng = np.random.default_rng([seed, config.lanes, sorted(DRAW).index(name)])
    before = random_memory(rng, config)
    for _ in range(CASES[config.name]):
        values = legal(rng, name, config)
        put_parameters(rng, before, name, values)
        actual, expected = copy.deepcopy(before), copy.deepcopy(before)
        Executor(actual, observe=False).run(make_op(0, name, values, config))
        ORACLE[name](expected, values)
        assert_equal(actual, expected)


@pytest.mark.parametrize("k", [64, 4000, 300_000])
def test_products_are_exact_at_full_range_whatever_their_length(k):
    left = np.full((2, k), -255, np.float32)
    right = np.full((k, 3), 255, np.float32)
    right[::2, 1] = -254
    expected = left.astype(object) @ right.astype(object)
    wrapped = [[(int(x) + (1 << 31)) % (1 << 32) - (1 << 31) for x in row] for row in expected]
    np.testing.assert_array_equal(exact_product(left, right, 255), wrapped)


def test_windows_far_apart_are_gathered_and_not_copied_with_what_lies_between(seed):
    config = CONFIGS["edge8"]
    rng = np.random.default_rng(seed)
    before = random_memory(rng, config)
    far = {"stride_h": 31, "stride_w": 31, "dilation_h": 31, "dilation_w": 31, "kernel_h": 2}
    size = {"in_h": 3, "in_w": 40, "in_row_stride": 40, "in_col_stride": 1, "out_h": 4, "out_w": 8}
    values = {**legal(rng, "conv", config), **far, **size, "kernel_w": 2, "origin_w": -31}
    values |= {"in_blocks": 1, "out_blocks": 1, "acc_base": 0, "wgt_base": 0}
    actual, expected = copy.deepcopy(before), copy.deepcopy(before)
    Executor(actual).run(make_op(0, "conv", values, config))
    ORACLE["conv"](expected, values)
    assert_equal(actual, expected)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_digests_are_those_of_the_specification(config, seed):
    rng = np.random.default_rng([seed, config.lanes])
    for rows in (
        rng.integers(-128, 128, (40, config.lanes)).astype(np.int8),
        rng.integers(-(1 << 31), 1 << 31, (40, config.lanes)).astype(np.int32),
    ):
        addresses = rng.integers(0, 1 << 43, 40)
        assert digest_rows(addresses, 0, rows) == digest(addresses.astype(np.uint64), rows)
        shifted = digest(np.arange(7, 47).astype(np.uint64) + np.uint64(5 << 40), rows)
        assert digest_rows(slice(7, 47), 5 << 40, rows) == shifted


def test_a_digest_covers_the_rows_that_the_oracle_changes(seed):
    config = CONFIGS["edge8"]
    rng = np.random.default_rng(seed)
    memory = random_memory(rng, config)
    values = legal(rng, "store", config)
    digest_of_store = Executor(memory).run(make_op(0, "store", values, config))
    beats = np.array([beat for beat, _ in transfer(memory, values)], dtype=np.uint64)
    region = memory.dram[values["base_reg"]].reshape(-1, config.lanes)
    expected = digest(beats + np.uint64(values["base_reg"] << 40), region[beats.astype(int)])
    assert digest_of_store == expected


LIMIT = 1024  # beyond every clamp, whatever the zero point


def test_float_scaling_is_that_of_the_specification_after_every_clamp(seed):
    rng = np.random.default_rng(seed)
    acc = rng.integers(-(1 << 31), 1 << 31, 100_000).astype(np.int32)
    acc[:50_000] >>= rng.integers(0, 31, 50_000).astype(np.int32)
    ties = np.float32(0.5) ** rng.integers(0, 33, len(acc)).astype(np.float32)
    spread = np.exp2(rng.uniform(-100, 100, len(acc))).astype(np.float32)
    for multiplier in (ties, spread, np.float32(3) * ties):
        with np.errstate(over="ignore"):
            exact, floats = arithmetic.scale_fp32(acc, multiplier), scale_float(acc, multiplier)
        np.testing.assert_array_equal(np.clip(floats, -LIMIT, LIMIT), np.clip(exact, -LIMIT, LIMIT))
    a, b = (rng.integers(-255, 256, 100_000).astype(np.int16) for _ in range(2))
    for scales in ((ties[: len(a)], ties, ties), (spread, spread[::-1].copy(), ties)):
        with np.errstate(over="ignore"):
            exact, floats = arithmetic.add_fp32(a, b, *scales), add_float(a, b, *scales)
        np.testing.assert_array_equal(np.clip(floats, -LIMIT, LIMIT), np.clip(exact, -LIMIT, LIMIT))


@pytest.mark.parametrize("name", ["drain", "pool", "add", "binary", "layernorm"])
def test_saturation_counts_are_outputs_that_the_clamp_changed(name, seed):
    config = CONFIGS["edge8"]
    rng = np.random.default_rng(seed)
    for _ in range(20):
        memory = random_memory(rng, config)
        values = legal(rng, name, config) | {"clamp_min": -50, "clamp_max": 60}
        put_parameters(rng, memory, name, values)
        wide, narrow = copy.deepcopy(memory), copy.deepcopy(memory)
        ORACLE[name](wide, {**values, "clamp_min": -128, "clamp_max": 127})
        executor = Executor(narrow, observe=False)
        executor.run(make_op(0, name, values, config))
        rows = footprint(make_op(0, name, values, config), config)[-1].rows
        low, high = wide.act[rows] < -50, wide.act[rows] > 60
        # Pad lanes are 0 and never counted.
        assert (executor.saturated_low, executor.saturated_high) == (low.sum(), high.sum())
