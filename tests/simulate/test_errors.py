"""Every error code, with the index, engine and cycle that the contract gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accelsim.errors import InputError, ProgramError
from accelsim.programs.building import REGION_BEATS, chain, launch, mask
from accelsim.simulate import BusFault, Simulator, run
from accelsim.spec.config import CONFIGS, LOAD, MATRIX, STORE, VECTOR
from accelsim.spec.isa import DISPATCH_CYCLES
from accelsim.spec.registers import DISPATCH_ENGINE, ErrorCode

EDGE = CONFIGS["edge8"]
END = ("end", {})
FETCHED = 1 + 32 + 8  # cycle in which dispatch takes instruction 0 on edge8


def load(row, count=8, **more):
    return ("load", {"base_reg": 2, "count0": count, "local_base": row, "local_stride0": 1, **more})


def patched(steps, index, **changes):
    """A launch whose instruction `index` has other words."""
    given = launch(EDGE, steps)
    words = given.program.words.copy()
    for word, value in changes.pop("words", {}).items():
        words[index, word] = value
    return replace(given, program=replace(given.program, words=words, **changes))


def error(result):
    return result.error_code, result.error_index, result.error_engine


def test_an_unknown_opcode_is_reported_at_dispatch():
    given = patched([load(0), END], 0, words={0: 77})
    result = run(given)
    assert error(result) == (ErrorCode.OPCODE, 0, DISPATCH_ENGINE)
    # Fetch has END in flight until 48, eight beats after the first instruction.
    assert result.cycles == max(FETCHED + DISPATCH_CYCLES + 1, FETCHED + 8)
    assert result.records == ()


def test_an_opcode_outside_the_mask_is_refused():
    given = launch(EDGE, [load(0), END])
    end_only = launch(EDGE, [END]).program
    masked = replace(
        given.program, opcode_mask=end_only.opcode_mask, contract_hash=end_only.contract_hash
    )
    assert error(run(replace(given, program=masked))) == (ErrorCode.OPCODE, 0, DISPATCH_ENGINE)


def test_a_field_out_of_range_and_a_reserved_bit_are_refused():
    zero_count = patched([load(0), END], 0, words={15: 1 << 31})
    assert error(run(zero_count)) == (ErrorCode.FIELD, 0, DISPATCH_ENGINE)
    own_token = launch(EDGE, [load(0), ("load", {"take": mask("load")}), END])
    assert error(run(own_token)) == (ErrorCode.FIELD, 1, DISPATCH_ENGINE)


def test_rows_beyond_a_memory_are_refused():
    steps = [load(0), load(EDGE.act_rows - 7), END]
    assert error(run(launch(EDGE, steps))) == (ErrorCode.EXTENT, 1, DISPATCH_ENGINE)


def test_dram_beyond_the_size_register_is_refused():
    steps = [load(0, dram_offset=REGION_BEATS - 7), END]
    assert error(run(launch(EDGE, steps))) == (ErrorCode.DRAM_EXTENT, 0, DISPATCH_ENGINE)


def test_another_contract_is_refused_before_anything_is_fetched():
    given = launch(EDGE, [load(0), END])
    other = replace(given.program, contract_hash=given.program.contract_hash ^ 1)
    result = run(replace(given, program=other))
    assert error(result) == (ErrorCode.CONTRACT, 0, DISPATCH_ENGINE)
    assert result.cycles == 1 and result.counters["fetch_beats"] == 0


def test_a_program_of_another_configuration_is_refused():
    given = launch(CONFIGS["base16"], chain(CONFIGS["base16"]))
    assert error(Simulator(EDGE).run(given)) == (ErrorCode.CONTRACT, 0, DISPATCH_ENGINE)


def test_a_program_without_end_is_reported_after_its_last_push():
    result = run(launch(EDGE, [load(0)]))
    assert error(result) == (ErrorCode.NO_END, 1, DISPATCH_ENGINE)
    # The load started in the cycle of the event, which is the one after its push.
    assert result.records[0].start_cycle == FETCHED + DISPATCH_CYCLES + 1
    empty = launch(EDGE, [END])
    words = empty.program.words[:0]
    result = run(replace(empty, program=replace(empty.program, words=words)))
    assert error(result) == (ErrorCode.NO_END, 0, DISPATCH_ENGINE)
    assert result.cycles == 2


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_bus_error_belongs_to_the_transfer_that_met_it(kind):
    base = 2 if kind == "read" else 3
    fault = BusFault(base, 7 * 8, 7 * 8 + 1)
    result = Simulator(EDGE, bus_faults=[fault]).run(launch(EDGE, chain(EDGE)))
    code, index, engine = error(result)
    if kind == "read":
        assert (code, index, engine) == (ErrorCode.BUS_READ, 0, LOAD)
        # Nothing that waited for its token ran.
        assert {r.index for r in result.records} == {0}
    else:
        assert (code, index, engine) == (ErrorCode.BUS_WRITE, 5, STORE)
        assert {r.index for r in result.records} == set(range(6))


def test_a_fault_beside_a_transfer_or_of_the_other_kind_harms_nothing():
    beside = [BusFault(2, 8 * 8, 9 * 8), BusFault(3, 0, 64, writes=False)]
    assert Simulator(EDGE, bus_faults=beside).run(launch(EDGE, chain(EDGE))).error_code == 0


def test_a_fetch_error_is_reported_when_dispatch_has_the_instruction():
    fault = BusFault(0, 64, 65)
    result = Simulator(EDGE, bus_faults=[fault]).run(launch(EDGE, [load(0), load(8), END]))
    assert error(result) == (ErrorCode.BUS_FETCH, 1, DISPATCH_ENGINE)


def test_the_lowest_index_wins_even_if_it_comes_later():
    steps = [load(0, 250), load(EDGE.act_rows), END]
    fault = BusFault(2, 0, 1)
    result = Simulator(EDGE, bus_faults=[fault]).run(launch(EDGE, steps))
    assert error(result) == (ErrorCode.BUS_READ, 0, LOAD)
    # The load was left to end: 250 beats.
    assert result.records[0].end_cycle + 1 == result.cycles > 250


def test_engines_finish_and_give_nothing_after_an_error():
    steps = [
        load(0, 250, give=mask("vector")),
        ("pool", {"take": mask("load"), "dst_base": 400}),
        load(EDGE.act_rows),
        END,
    ]
    result = run(launch(EDGE, steps))
    assert error(result) == (ErrorCode.EXTENT, 2, DISPATCH_ENGINE)
    assert [r.index for r in result.records] == [0]
    assert not any(result.semaphores)
    assert result.cycles == result.records[0].end_cycle + 1


def test_the_256th_token_is_an_error_of_its_giver():
    config = replace(EDGE, queue_depth=1)
    steps = [load(0, give=mask("matrix")), load(0, give=mask("matrix")), load(0), END]
    presets = [0] * 16
    presets[LOAD * 4 + MATRIX] = 254
    given = launch(config, steps, semaphores=tuple(presets))
    result = Simulator(config, checks=False).run(given)
    assert error(result) == (ErrorCode.SEMAPHORE, 1, LOAD)
    assert result.semaphores[LOAD * 4 + MATRIX] == 255


def stuck():
    return [load(0), ("conv", {"take": mask("load")}), ("drain", {"take": mask("matrix")}), END]


def test_the_watchdog_names_the_oldest_instruction_that_waits():
    given = launch(EDGE, stuck(), cycle_limit=5000)
    result = Simulator(EDGE, checks=False).run(given)
    assert error(result) == (ErrorCode.WATCHDOG, 1, MATRIX)
    assert result.cycles == 5001
    assert {r.index for r in result.records} == {0}


def test_the_watchdog_names_a_running_instruction_and_lets_it_end():
    given = launch(EDGE, [load(0, 250), END], cycle_limit=100)
    result = run(given)
    assert error(result) == (ErrorCode.WATCHDOG, 0, LOAD)
    assert result.cycles == result.records[0].end_cycle + 1 > 100


def test_the_watchdog_names_dispatch_while_it_holds_the_oldest():
    result = run(launch(EDGE, [load(0), END], cycle_limit=FETCHED + 2))
    assert error(result) == (ErrorCode.WATCHDOG, 0, DISPATCH_ENGINE)


def test_a_run_that_ends_in_the_watchdogs_cycle_is_in_time():
    cycles = run(launch(EDGE, [load(0), END])).cycles
    assert run(launch(EDGE, [load(0), END], cycle_limit=cycles)).error_code == 0
    late = run(launch(EDGE, [load(0), END], cycle_limit=cycles - 1))
    # In that cycle the load reports its end.
    assert error(late) == (ErrorCode.WATCHDOG, 0, LOAD)


def test_a_deadlock_is_an_error_before_anything_runs():
    with pytest.raises(ProgramError, match=r"deadlock: instruction 1 \(conv\) on matrix waits"):
        run(launch(EDGE, stuck()))


def test_a_deadlock_without_checks_and_limit_is_an_error_too():
    given = launch(EDGE, stuck(), cycle_limit=0)
    with pytest.raises(ProgramError, match="no progress and has no cycle limit"):
        Simulator(EDGE, checks=False).run(given)


def test_memory_behind_an_error_is_what_had_started_by_then():
    steps = [*chain(EDGE)[:-1], load(EDGE.act_rows), END]
    given = launch(EDGE, steps)
    result = run(given)
    # Dispatch refused the seventh instruction while the second load ran.
    assert {r.index for r in result.records} < set(range(5))
    np.testing.assert_array_equal(result.dram[3], given.dram[3])


def test_a_wrong_number_of_presets_is_refused():
    with pytest.raises(InputError, match="3 semaphore presets, use 16 or none"):
        run(launch(EDGE, [END], semaphores=(1, 2, 3)))
    with pytest.raises(InputError, match="use 0 to 255"):
        run(launch(EDGE, [END], semaphores=(256, *[0] * 15)))


def test_a_memory_faster_than_the_model_is_refused():
    with pytest.raises(InputError, match="memory latency is 1 cycles, use 2 or more"):
        Simulator(EDGE, latency=1)


def test_an_error_engine_is_the_one_that_ran_the_instruction():
    presets = [0] * 16
    presets[VECTOR * 4 + STORE] = 255
    steps = [("pool", {"give": mask("store"), "dst_base": 200}), END]
    given = launch(EDGE, steps, semaphores=tuple(presets))
    assert error(Simulator(EDGE, checks=False).run(given)) == (ErrorCode.SEMAPHORE, 0, VECTOR)
