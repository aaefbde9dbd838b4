"""Cycles of small programs, derived by hand from the rules of docs/contract.md."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelsim.programs.building import chain, launch, mask
from accelsim.programs.drawing import DRAW, legal
from accelsim.simulate import Simulator, run
from accelsim.simulate.bursts import burst_beats, split
from accelsim.spec.config import CONFIGS, LOAD, MATRIX, STORE, VECTOR
from accelsim.spec.durations import LAYERNORM_CYCLES, ROWS_LATENCY, SOFTMAX_CYCLES
from accelsim.spec.isa import BY_NAME, DISPATCH_CYCLES, MATRIX_LATENCY, VECTOR_LATENCY

EDGE = CONFIGS["edge8"]
END = ("end", {})


def load(row, count=8, **more):
    return ("load", {"base_reg": 2, "count0": count, "local_base": row, "local_stride0": 1, **more})


def records(steps, latency=32, config=EDGE, **changes):
    result = Simulator(config, latency=latency, checks=False).run(launch(config, steps, **changes))
    return result, {r.index: r for r in result.records}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("latency", [2, 32, 100])
def test_an_empty_program_takes_fetch_and_dispatch(config, latency):
    result = Simulator(config, latency=latency).run(launch(config, [END]))
    beats = 64 // config.lanes
    last_beat = 1 + latency + beats - 1  # AR in cycle 1
    assert result.cycles == last_beat + 1 + DISPATCH_CYCLES


def test_a_load_starts_after_its_push_and_ends_after_its_last_beat():
    result, by_index = records([load(0), END])
    pushed = 1 + 32 + 8 + DISPATCH_CYCLES  # fetched 33 to 40, taken in 41
    start = pushed + 1
    assert by_index[0].start_cycle == start == 47
    # AR one cycle after the start, 8 beats, done one cycle after the last.
    assert by_index[0].end_cycle == start + 1 + 32 + 8 - 1 + 1
    assert result.cycles == by_index[0].end_cycle + 1


def test_dispatch_takes_an_instruction_every_six_cycles():
    _, by_index = records([load(0), ("drain", {}), ("conv", {}), ("pool", {}), END], latency=2)
    # Fetched in 3 to 10, taken in 11, pushed in 16, next one taken in 17 (fetched 11 to 18: in 19).
    pushes = [16, 24, 32, 40]
    assert [by_index[i].start_cycle for i in range(3)] == [p + 1 for p in pushes[:3]]


def test_fetch_keeps_no_more_than_its_depth_in_flight():
    steps = [("conv", {}), ("drain", {}), END]
    _, one = records(steps, latency=50, config=replace(EDGE, fetch_depth=1))
    _, four = records(steps, latency=50)
    # Taken in 59; with one place the next address follows in 60, its beats are there in 117.
    assert one[1].start_cycle == 118 + DISPATCH_CYCLES + 1
    assert four[1].start_cycle == 67 + DISPATCH_CYCLES + 1


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", sorted(set(DRAW) - {"load", "store"}))
def test_matrix_and_vector_take_the_cycles_of_the_table(name, config, seed):
    rng = np.random.default_rng([seed, config.lanes])
    for _ in range(10):
        values = legal(rng, name, config) | {"take": 0, "give": 0}
        _, by_index = records([(name, values), END], config=config)
        expected = BY_NAME[name].duration(values, config)
        assert by_index[0].end_cycle - by_index[0].start_cycle == expected


def test_durations_by_hand():
    conv = {"out_w": 5, "in_w": 5, "in_col_stride": 1, "kernel_w": 3, "out_blocks": 2}
    cases = [
        ("conv", conv, 8 + 5 * 8 + 5 + MATRIX_LATENCY),
        ("dwconv", {"out_w": 12, "in_w": 12, "wide": 1, "kernel_h": 2}, 3 + 14 + 14 + 9),
        ("drain", {"out_h": 3, "out_w": 5, "blocks": 2}, 2 * 17 + VECTOR_LATENCY),
        ("pool", {"kernel_h": 2, "kernel_w": 3, "out_w": 4, "in_w": 9}, 24 + VECTOR_LATENCY),
        ("pool", {"kernel_h": 2, "out_w": 4, "sum": 1}, 8 + 2 + VECTOR_LATENCY),
        ("add", {"out_w": 7, "blocks": 2}, 2 * 17 + VECTOR_LATENCY),
        ("drain", {"out_h": 3, "out_w": 5, "blocks": 2, "mode": 1}, 2 * 18 + VECTOR_LATENCY),
        ("pool", {"kernel_h": 2, "out_w": 4, "sum": 1, "mode": 4}, 8 + 3 + VECTOR_LATENCY),
        ("add", {"out_w": 7, "blocks": 2, "mode": 1}, 2 * 17 + VECTOR_LATENCY),
        ("add", {"out_w": 7, "blocks": 2, "mode": 2}, 2 * 20 + VECTOR_LATENCY),
        ("binary", {"out_w": 7, "blocks": 2}, 2 * 16 + VECTOR_LATENCY),
        ("binary", {"out_w": 7, "blocks": 2, "mode": 2, "kind": 1}, 2 * 17 + VECTOR_LATENCY),
        ("lookup", {"out_w": 7, "out_h": 2, "blocks": 2}, 28 + ROWS_LATENCY),
        ("softmax", {"out_w": 7, "blocks": 2}, 7 * (6 + SOFTMAX_CYCLES) + ROWS_LATENCY),
        ("layernorm", {"out_w": 3, "blocks": 4}, 3 * (12 + LAYERNORM_CYCLES) + ROWS_LATENCY),
    ]
    for name, values, expected in cases:
        _, by_index = records([(name, values), END])
        assert by_index[0].end_cycle - by_index[0].start_cycle == expected, name


def test_tokens_given_at_an_end_start_the_taker_one_cycle_later():
    _, by_index = records(chain(EDGE))
    assert by_index[3].start_cycle == by_index[2].end_cycle + 1
    assert by_index[4].start_cycle == by_index[3].end_cycle + 1
    assert by_index[5].start_cycle == by_index[4].end_cycle + 1


def test_an_engine_starts_its_next_command_in_the_cycle_after_done():
    _, by_index = records([load(0, 200), load(200), END])
    assert by_index[1].start_cycle == by_index[0].end_cycle + 1


@pytest.mark.parametrize("outstanding", [1, 2, 8])
def test_load_bursts_in_flight_hide_latency(outstanding):
    config = replace(EDGE, read_outstanding=outstanding)
    bursts = 16
    strided = load(0, 4, count1=bursts, dram_stride1=8, local_stride1=4)
    _, by_index = records([strided, END], latency=40, config=config)
    took = by_index[0].end_cycle - by_index[0].start_cycle
    # A burst takes `latency` and 4 beats; its place is free in the cycle after its last beat.
    if outstanding == 1:
        assert took == 1 + bursts * (40 + 4)
    elif outstanding == 2:
        # Pairs: the second of a pair is served 4 cycles after the first.
        assert took == 1 + (bursts // 2) * (40 + 4) + 4
    else:
        # Eight at once: 8·4 beats in less than the latency of 40, so two rounds.
        assert took == 1 + (bursts // 8) * (40 + 4) + 7 * 4


def test_a_store_ends_one_cycle_after_its_last_response():
    steps = [("store", {"base_reg": 3, "count0": 5, "local_stride0": 1}), END]
    _, by_index = records(steps)
    # W in start+3 to start+7, service 32 later for 5 cycles, B in the cycle after, done one later.
    assert by_index[0].end_cycle - by_index[0].start_cycle == 3 + 4 + 32 + 5 + 1


def test_store_beats_follow_each_other_across_bursts_until_responses_are_missing():
    strided = {"base_reg": 3, "count0": 2, "count1": 10, "dram_stride1": 4, "local_stride1": 2}
    steps = [("store", {**strided, "local_stride0": 1}), END]
    _, wide = records(steps, config=replace(EDGE, write_outstanding=16))
    assert wide[0].end_cycle - wide[0].start_cycle == 3 + 19 + 32 + 2 + 1
    _, narrow = records(steps, config=replace(EDGE, write_outstanding=1))
    # Next W two cycles after B: last W, 32, 2 beats of service, B, then W of two beats.
    assert narrow[0].end_cycle - narrow[0].start_cycle == 3 + 1 + 9 * (32 + 2 + 2 + 1) + 32 + 2 + 1


def test_reads_and_writes_share_one_beat_a_cycle():
    pair = [load(0, 250), ("store", {"base_reg": 3, "count0": 100, "local_base": 300}), END]
    _, by_index = records(pair)
    assert by_index[0].start_cycle < by_index[1].start_cycle < by_index[0].end_cycle
    # The store's beats wait behind the load's.
    assert by_index[1].end_cycle >= by_index[0].end_cycle + 100


def test_a_full_queue_stalls_dispatch_until_the_cycle_after_a_pop():
    config = replace(EDGE, queue_depth=1)
    steps = [load(0, 250), load(0, 250), load(0, 250), ("conv", {}), END]
    result, by_index = records(steps, latency=20, config=config)
    # The third load takes the place of the second, which leaves it when the first is done.
    push_of_third = by_index[1].start_cycle + 1
    assert by_index[3].start_cycle == push_of_third + 1 + DISPATCH_CYCLES + 1
    assert result.counters["dispatch_stall_cycles"] > 200


def test_end_waits_for_instructions_fetched_behind_it():
    alone, _ = records([END], latency=60)
    followed, _ = records([END, load(0), load(0), load(0), load(0)], latency=60)
    assert followed.cycles > alone.cycles
    assert followed.error_code == 0


def test_counters_add_up():
    result, _ = records(chain(EDGE))
    counters = result.counters
    assert counters["fetch_beats"] == 7 * 8
    assert (counters["load_beats"], counters["store_beats"]) == (24, 8)
    assert counters["op_load"] == 3 and counters["op_conv"] == 1
    spans = {e: sum(r.end_cycle - r.start_cycle for r in result.records if r.engine == e)
             for e in (LOAD, MATRIX, VECTOR, STORE)}  # fmt: skip
    for engine, name in enumerate(("load", "matrix", "vector", "store")):
        assert counters[f"{name}_busy_cycles"] == spans[engine]
    assert counters["matrix_wait_cycles"] > 0


def test_latency_changes_cycles_and_not_values():
    near, far = (Simulator(EDGE, latency=n).run(launch(EDGE, chain(EDGE))) for n in (4, 90))
    assert near.cycles < far.cycles
    np.testing.assert_array_equal(near.dram[3], far.dram[3])


@given(st.integers(0, 511), st.integers(1, 3000), st.sampled_from([128, 256, 512]))
def test_bursts_cover_a_run_and_stay_within_pages(phase, beats, page):
    phase %= page
    pieces = split(phase, beats, page)
    assert sum(pieces) == beats and max(pieces) <= 256
    at = phase
    for length in pieces:
        assert at // page == (at + length - 1) // page
        at += length
    # Nothing is cut without need.
    assert all(p == 256 or (phase + sum(pieces[: i + 1])) % page == 0
               for i, p in enumerate(pieces[:-1]))  # fmt: skip


def test_bursts_of_strided_runs_are_cut_where_each_run_crosses_a_page():
    fields = {"dram_offset": 500, "count0": 20, "count1": 3, "count2": 2}
    strides = {"dram_stride1": 512, "dram_stride2": 6}
    assert burst_beats({**fields, **strides}, 8, 0) == [12, 8] * 3 + [6, 14] * 3
    assert burst_beats({**fields, **strides}, 8, 4096 + 64) == [4, 16] * 3 + [20] * 3


@pytest.mark.parametrize("name", DRAW)
def test_every_instruction_retires(name, seed):
    rng = np.random.default_rng(seed)
    values = legal(rng, name, EDGE) | {"take": 0, "give": 0}
    result, by_index = records([(name, values), END])
    assert result.error_code == 0 and by_index[0].end_cycle < result.cycles


def test_back_to_back_runs_have_the_same_cycles():
    simulator = Simulator(EDGE)
    first, second = (simulator.run(launch(EDGE, chain(EDGE), seed=s)) for s in (1, 2))
    assert first.cycles == second.cycles == run(launch(EDGE, chain(EDGE))).cycles


def test_engines_overlap_where_semaphores_let_them():
    steps = [load(0, 64, give=mask("matrix")), ("conv", {"take": mask("load"), "out_w": 60}),
             load(200, 64), END]  # fmt: skip
    _, by_index = records(steps)
    assert by_index[2].start_cycle < by_index[1].end_cycle
