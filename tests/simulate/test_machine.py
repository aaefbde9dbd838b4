"""Whole programs on the simulator: values, presets, records and counters."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.programs.building import chain, launch
from accelsim.simulate import Simulator, run
from accelsim.spec.config import CONFIGS, LOAD, MATRIX, STORE, VECTOR
from accelsim.spec.digest import digest


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_chain_of_all_engines_computes_a_product(config):
    steps, rows, lanes = chain(config), 8, config.lanes
    given = launch(config, steps)
    result = run(given)
    x = given.dram[2][: rows * lanes].view(np.int8).reshape(rows, lanes).astype(np.int64)
    w = given.dram[1][: lanes * lanes].view(np.int8).reshape(lanes, lanes).astype(np.int64)
    words = given.dram[1][64 * lanes : 72 * lanes].view(np.int32).reshape(2, lanes)
    acc = (x @ w + words[0]).astype(np.int32).astype(np.float32) * words[1].view(np.float32)
    expected = np.clip(np.rint(acc.astype(np.float64)), -128, 127).astype(np.int8)
    stored = result.dram[3][: rows * lanes].view(np.int8).reshape(rows, lanes)
    np.testing.assert_array_equal(stored, expected)
    assert result.error_code == 0 and not any(result.semaphores)


def test_records_name_engines_indices_and_store_digests():
    config = CONFIGS["edge8"]
    result = run(launch(config, chain(config)))
    assert [(r.engine, r.index) for r in result.records] == [
        *((LOAD, 0), (LOAD, 1), (LOAD, 2), (MATRIX, 3), (VECTOR, 4), (STORE, 5))
    ]
    rows = result.dram[3][:64].reshape(8, 8)
    expected = digest(np.arange(8, dtype=np.uint64) + np.uint64(3 << 40), rows)
    assert result.records[-1].digest == expected


def test_a_launch_leaves_the_memories_that_it_was_given_alone():
    config = CONFIGS["edge8"]
    given = launch(config, chain(config))
    before = {base: data.copy() for base, data in given.dram.items()}
    run(given)
    for base, data in before.items():
        np.testing.assert_array_equal(given.dram[base], data)


def test_timing_alone_has_the_same_cycles_and_no_values():
    config = CONFIGS["edge8"]
    given = launch(config, chain(config))
    full, timed = run(given), Simulator(config, values=False).run(given)
    assert timed.cycles == full.cycles
    assert [(r.index, r.start_cycle, r.end_cycle) for r in timed.records] == [
        (r.index, r.start_cycle, r.end_cycle) for r in full.records
    ]
    np.testing.assert_array_equal(timed.dram[3], given.dram[3])
