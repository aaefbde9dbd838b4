"""Planted bugs: each one changes what a program does, and none exists unless asked for."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.programs.building import launch, mask, pixels
from accelsim.simulate import BUGS, Simulator
from accelsim.simulate.bugs import find
from accelsim.spec.config import CONFIGS, ENGINES
from accelsim.spec.registers import ErrorCode

EDGE = CONFIGS["edge8"]
BANK = EDGE.act_bank_rows
CLAMP = {"clamp_min": -90, "clamp_max": 90, "zero_point": 3}
ROWS = {"local_stride0": 1}
TO_STORE = {"give": mask("store")}


def everything():
    """One program in which every instruction computes something that reaches DRAM."""
    window = {**pixels(8), "input_zero_point": 5, "tail": 8}
    out = {**CLAMP, "dst_col_stride": 1, "tail": 8, "par_base": 0}
    plain = {"in_col_stride": 1, "dst_col_stride": 1, "out_w": 8, "tail": 8}
    fill = {"base_reg": 2, "count0": 10, "local_stride0": 1}
    matrix, vector = mask("matrix"), mask("vector")
    return [
        ("load", fill),
        ("load", {"memory": 1, "base_reg": 1, "count0": 16, "local_stride0": 1}),
        ("load", {"memory": 2, "base_reg": 1, "dram_offset": 64, "count0": 52, "local_stride0": 1}),
        ("load", {"memory": 3, "base_reg": 1, "dram_offset": 128, "count0": 256} | ROWS),
        ("load", {**fill, "local_base": BANK, "dram_offset": 20, "give": matrix | vector}),
        ("conv", {**window, "tail": 8, "take": mask("load"), "give": vector}),
        ("dwconv", {**window, "acc_bank": 1, "give": vector}),
        ("drain", {**out, "out_w": 8, "dst_base": 2 * BANK, "take": mask("load", "matrix")}),
        (
            "drain",
            {**out, "out_w": 8, "acc_bank": 1, "dst_base": 2 * BANK + 10, "take": mask("matrix")},
        ),
        ("pool", {**window, **out, "in_base": 1, "sum": 1, "dst_base": 2 * BANK + 20}),
        (
            "add",
            {**out, "out_w": 8, "a_col_stride": 1, "b_base": BANK, "b_col_stride": 1}
            | {"a_zero_point": 2, "b_zero_point": -9, "par_base": 2, "dst_base": 2 * BANK + 30},
        ),
        (
            "add",
            {**out, "out_w": 8, "a_col_stride": 1, "b_base": BANK, "b_col_stride": 1}
            | {"mode": 1, "par_base": 5, "dst_base": 2 * BANK + 40},
        ),
        (
            "binary",
            {**out, "out_w": 8, "a_col_stride": 1, "b_base": BANK, "b_col_stride": 1}
            | {"mode": 3, "kind": 2, "par_base": 8, "dst_base": 2 * BANK + 50},
        ),
        ("lookup", {**plain, "dst_base": 2 * BANK + 60}),
        ("softmax", {**plain, "lut": 1, "dst_base": 2 * BANK + 70}),
        (
            "layernorm",
            {**out, **plain, "gain_bits": 3, "par_base": 11, "dst_base": 2 * BANK + 80} | TO_STORE,
        ),
        *(
            (
                "store",
                {"base_reg": 3, "dram_offset": 1 + 10 * i, "local_base": 2 * BANK + 10 * i}
                | {"count0": 8, "local_stride0": 1}
                | ({"take": vector} if i == 0 else {}),
            )
            for i in range(9)
        ),
        ("end", {}),
    ]


def steps():
    """`everything` without fields that an instruction does not have."""
    result = []
    for name, values in everything():
        kept = dict(values)
        if name == "conv":
            kept |= {"in_tail": 8, "out_tail": 8}
            kept.pop("tail")
        result.append((name, kept))
    return result


def given():
    made = launch(EDGE, steps(), cycle_limit=20_000)
    rows = made.dram[1][64 * 8 : 116 * 8].view(np.float32).reshape(13, 8)
    rows[1] = np.geomspace(0.001, 0.5, 8)  # multipliers
    rows[2:5] = np.array([0.5, 0.7, 1.1])[:, None]  # the scales of add
    words = rows.view(np.int32)
    words[5:8] = np.array([1 << 20, 3 << 19, 21])[:, None]  # a half, ¾
    words[8:11] = np.array([3, 1 << 30, -1])[:, None]  # a quarter: ties abound
    words[11:] = np.array([400, 1 << 17])[:, None]  # gain, offset
    return made


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_changes_the_result(name):
    right, wrong = Simulator(EDGE).run(given()), Simulator(EDGE, bug=name).run(given())
    assert right.error_code == 0
    differs = not np.array_equal(right.dram[3], wrong.dram[3])
    assert differs or wrong.error_code == ErrorCode.WATCHDOG


def test_every_engine_and_every_kind_has_a_bug():
    assert {e for bug in BUGS.values() for e in bug.engines} == set(ENGINES)
    kinds = {"address", "sign", "rounding", "semaphore", "count", "table", "operation"}
    assert {bug.kind for bug in BUGS.values()} == kinds


def test_a_bug_can_be_planted_in_one_instruction():
    right = Simulator(EDGE).run(given())
    wrong = Simulator(EDGE, bug="store_count@17").run(given())
    changed = np.flatnonzero(right.dram[3] != wrong.dram[3]) // EDGE.lanes
    assert set(changed) == {1 + 10 + 7}
    other = Simulator(EDGE, bug="vector_rounding@7").run(given())
    changed = np.flatnonzero(right.dram[3] != other.dram[3]) // EDGE.lanes
    assert len(changed) and set(changed) <= set(range(1, 9))


@pytest.mark.parametrize(("index", "first"), [(11, 41), (12, 51)])
def test_planted_rounding_reaches_integer_modes(index, first):
    right = Simulator(EDGE).run(given())
    wrong = Simulator(EDGE, bug=f"vector_rounding@{index}").run(given())
    changed = np.flatnonzero(right.dram[3] != wrong.dram[3]) // EDGE.lanes
    assert len(changed) and set(changed) <= set(range(first, first + 8))


def test_digests_show_the_instruction_with_the_bug_first():
    right, wrong = Simulator(EDGE).run(given()), Simulator(EDGE, bug="conv_sign").run(given())
    expected = {r.index: r.digest for r in right.records}
    assert min(r.index for r in wrong.records if r.digest != expected[r.index]) == 5


def test_an_unknown_bug_is_refused_with_the_list():
    with pytest.raises(InputError, match="no planted bug is called 'nonsense': use one of load_a"):
        Simulator(EDGE, bug="nonsense")
    with pytest.raises(InputError, match="no planted bug"):
        find("store_count@x")
