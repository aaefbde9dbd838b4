"""Footprints are exact: what is outside of them neither matters nor changes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from accelsim.programs.drawing import DRAW, legal, put_parameters, random_memory
from accelsim.simulate.decoded import make_op
from accelsim.simulate.footprint import footprint
from accelsim.simulate.rows import distinct, merged, rows_of
from accelsim.spec.config import CONFIGS
from tests.simulate.oracle import ORACLE

CONFIG = CONFIGS["edge8"]


def arrays(memory):
    """Every memory by its name in footprints, a row a unit."""
    dram = {f"dram{b}": data.reshape(-1, CONFIG.lanes) for b, data in memory.dram.items()}
    chip = {"act": memory.act, "wgt": memory.wgt, "par": memory.par, "tab": memory.tab}
    return {**chip, "acc0": memory.acc[0], "acc1": memory.acc[1], **dram}


def masks(touches, memory, write):
    found = {name: np.zeros(len(array), bool) for name, array in arrays(memory).items()}
    for touch in touches:
        if touch.write == write:
            found[touch.memory][touch.rows] = True
    return found


@pytest.mark.parametrize("name", DRAW)
def test_rows_outside_do_not_matter_and_do_not_change(name, seed):
    rng = np.random.default_rng([seed, sorted(DRAW).index(name)])
    for _ in range(30):
        before = random_memory(rng, CONFIG)
        values = legal(rng, name, CONFIG)
        put_parameters(rng, before, name, values)
        touches = footprint(make_op(0, name, values, CONFIG), CONFIG)
        reads, writes = masks(touches, before, False), masks(touches, before, True)
        junk = random_memory(rng, CONFIG)
        for key, array in arrays(junk).items():
            array[reads[key]] = arrays(before)[key][reads[key]]
        start = copy.deepcopy(before)
        ORACLE[name](before, values)
        ORACLE[name](junk, values)
        for key, array in arrays(before).items():
            np.testing.assert_array_equal(array[writes[key]], arrays(junk)[key][writes[key]])
            np.testing.assert_array_equal(array[~writes[key]], arrays(start)[key][~writes[key]])


@pytest.mark.parametrize("name", ["conv", "dwconv"])
def test_every_activation_row_that_is_named_matters(name, seed):
    rng = np.random.default_rng([seed, len(name)])
    changed = 0
    for _ in range(20):
        before = random_memory(rng, CONFIG)
        full = {"in_tail": 8, "out_tail": 8, "tail": 8, "wide": 0}
        values = legal(rng, name, CONFIG)
        values |= {k: v for k, v in full.items() if k in values}
        touches = footprint(make_op(0, name, values, CONFIG), CONFIG)
        read = np.flatnonzero(masks(touches, before, False)["act"])
        if len(read):
            expected, other = copy.deepcopy(before), copy.deepcopy(before)
            other.act[rng.choice(read)] ^= 0x55
            ORACLE[name](expected, values)
            ORACLE[name](other, values)
            assert not np.array_equal(other.acc, expected.acc)
            changed += 1
    assert changed > 5


def test_contiguous_dimensions_become_one_slice():
    assert merged(((3, 20), (1, 7), (5, 4), (4, 1))) == ((60, 1),)
    assert rows_of(10, ((3, 20), (5, 4), (4, 1))) == slice(10, 70)
    np.testing.assert_array_equal(rows_of(1, ((2, 10), (2, 3))), [1, 4, 11, 14])


def test_rows_written_twice_are_noticed_where_strides_interleave_or_overlap():
    for dimensions, expected in (
        (((2, 1), (3, 2)), True),
        (((3, 2), (2, 3)), True),
        (((3, 2), (3, 1)), False),
        (((2, 0), (3, 1)), False),
        (((2, 4), (3, 2)), False),
    ):
        assert distinct(rows_of(0, dimensions), dimensions) is expected, dimensions
