"""Static analysis: each kind of mistake is seen, named, and absent from a correct program."""

from __future__ import annotations

import pytest

from accelsim.errors import ProgramError
from accelsim.programs.building import REGION_BEATS, chain, launch, mask, pixels, program
from accelsim.simulate import Simulator, analyse_program, run
from accelsim.spec.config import CONFIGS

EDGE = CONFIGS["edge8"]
SIZES = [REGION_BEATS * EDGE.lanes] * 8


def analyse(steps, config=EDGE, **changes):
    return analyse_program(program(config, steps, **changes), config, SIZES)


def without(steps, index, *fields):
    """Steps with fields of one step left out."""
    name, values = steps[index]
    kept = {k: v for k, v in values.items() if k not in fields}
    return [*steps[:index], (name, kept), *steps[index + 1 :]]


def changed(steps, index, **fields):
    """Steps with fields of one step replaced."""
    name, values = steps[index]
    return [*steps[:index], (name, {**values, **fields}), *steps[index + 1 :]]


def load(row, count=8, **more):
    return ("load", {"base_reg": 2, "count0": count, "local_base": row, "local_stride0": 1, **more})


def store(row, beat=0, **more):
    fields = {"base_reg": 3, "local_base": row, "count0": 8, "local_stride0": 1}
    return ("store", {**fields, "dram_offset": beat, **more})


def maximum(source, target, **more):
    """A pool that copies 8 rows through the vector engine."""
    fields = {**pixels(8), "in_base": source, "dst_base": target, "dst_col_stride": 1, "tail": 8}
    return ("pool", {**fields, "clamp_min": -128, "clamp_max": 127, **more})


END = ("end", {})
BANK = EDGE.act_bank_rows


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_correct_program_passes_and_has_one_order(config):
    found = analyse_program(program(config, chain(config)), config, [1 << 20] * 8)
    assert found is not None
    assert found.sequence == (0, 1, 2, 3, 4, 5)
    assert found.clocks[5].tolist() == [3, 1, 1, 0]


def test_a_missing_semaphore_between_load_and_matrix_is_a_race():
    steps = changed(without(chain(EDGE), 3, "take"), 2, give=mask("vector"))
    with pytest.raises(ProgramError, match=r"undefined|race") as found:
        analyse(steps)
    assert "instruction 3 (conv)" in str(found.value)


def test_a_row_read_while_it_is_reloaded_is_a_race_that_names_both():
    steps = [load(0, give=mask("vector")), maximum(0, BANK, take=mask("load")), load(4), END]
    pattern = (
        r"race: instruction 1 \(pool\) on vector and instruction 2 \(load\) on load .* "
        r"reads and the second writes rows 4-7 of activation memory"
    )
    with pytest.raises(ProgramError, match=pattern):
        analyse(steps)


def test_a_row_read_while_it_is_reloaded_is_found_in_either_order():
    first = [load(0, give=mask("vector")), load(4), maximum(0, BANK, take=mask("load")), END]
    with pytest.raises(
        ProgramError, match=r"race: instruction 1 \(load\).* instruction 2 \(pool\)"
    ):
        analyse(first)


def test_two_engines_that_write_one_row_race():
    steps = [
        load(0, give=mask("vector")),
        maximum(0, BANK, take=mask("load")),
        load(BANK + 7, 1),
        END,
    ]
    with pytest.raises(ProgramError, match=r"race: .* writes .* writes row 135 of activation"):
        analyse(steps)


def test_a_store_and_a_load_of_the_same_dram_bytes_race():
    steps = [
        load(0, give=mask("store")),
        store(0, base_reg=2, dram_offset=20, take=mask("load")),
        load(BANK, dram_offset=24),
        END,
    ]
    with pytest.raises(ProgramError, match=r"race: .* rows 24-27 of DRAM \(beats behind base reg"):
        analyse(steps)


def test_a_token_back_orders_the_store_before_the_load():
    steps = [
        load(0, give=mask("store")),
        store(0, base_reg=2, dram_offset=20, take=mask("load"), give=mask("load")),
        load(BANK, dram_offset=24, take=mask("store")),
        END,
    ]
    assert analyse(steps).sequence == (0, 1, 2)


def test_order_reaches_through_a_third_engine():
    steps = [
        load(0, give=mask("vector")),
        maximum(0, BANK, take=mask("load"), give=mask("store")),
        store(BANK, take=mask("vector"), give=mask("load")),
        load(BANK, take=mask("store")),
        END,
    ]
    assert analyse(steps).clocks[3].tolist() == [1, 0, 1, 1]


def test_unordered_readers_of_one_activation_bank_share_its_port():
    steps = [
        load(0, 16, give=mask("vector", "store")),
        maximum(0, BANK, take=mask("load")),
        store(8, take=mask("load")),
        END,
    ]
    pattern = (
        r"instruction 1 \(pool\).*instruction 2 \(store\).*read port of an activation bank, bank 0"
    )
    with pytest.raises(ProgramError, match=pattern):
        analyse(steps)


def test_unordered_writers_of_one_activation_bank_share_its_port():
    steps = [
        load(0, give=mask("vector")),
        maximum(0, BANK, take=mask("load")),
        load(BANK + 50),
        END,
    ]
    with pytest.raises(ProgramError, match=r"write port of an activation bank, bank 1"):
        analyse(steps)


def test_filling_and_draining_one_accumulator_bank_at_once_shares_its_port():
    steps = [*chain(EDGE)[:-2], ("conv", {**chain(EDGE)[3][1], "take": 0, "give": 0}), END]
    steps = changed(steps, 5, acc_base=32)
    steps = changed(steps, 4, give=0)
    with pytest.raises(ProgramError, match=r"read port of an accumulator bank, bank 0"):
        analyse(steps)
    other_bank = changed(steps, 5, acc_bank=1)
    assert analyse(other_bank) is not None


def test_undefined_activation_rows_are_named():
    steps = changed(chain(EDGE), 0, count0=5)
    pattern = r"instruction 3 \(conv\) reads undefined rows 5-7 of activation memory"
    with pytest.raises(ProgramError, match=pattern):
        analyse(steps)


def test_undefined_weight_and_parameter_rows_are_named():
    with pytest.raises(ProgramError, match=r"conv\) reads undefined row 7 of weight memory"):
        analyse(changed(chain(EDGE), 1, count0=7))
    with pytest.raises(ProgramError, match=r"drain\) reads undefined rows 4-7 of parameter memory"):
        analyse(changed(chain(EDGE), 2, count0=4))


def looked_up(beats, **more):
    """A lookup of 8 rows with a table of which `beats` beats are loaded."""
    table = load(0, beats, memory=3, base_reg=1, give=mask("vector"))
    fields = {"in_col_stride": 1, "dst_base": BANK, "dst_col_stride": 1, "out_w": 8, "tail": 8}
    return [load(0), table, ("lookup", {**fields, "take": mask("load"), **more}), END]


def test_undefined_words_of_a_table_are_named_whether_they_are_used_or_not():
    assert analyse(looked_up(128)) is not None
    pattern = r"lookup\) reads undefined row 127 of table memory \(beats\): nothing wrote there"
    with pytest.raises(ProgramError, match=pattern):
        analyse(looked_up(127))
    with pytest.raises(ProgramError, match=r"lookup\) reads undefined rows 128-255 of table"):
        analyse(looked_up(128, lut=1))


def test_a_table_that_is_reloaded_while_it_is_read_is_a_race():
    steps = looked_up(128)
    other = load(128, memory=3, base_reg=1)
    assert analyse([*steps[:-1], other, END]) is not None
    same = load(127, 1, memory=3, base_reg=1)
    pattern = r"race: .* reads and the second writes row 127 of table memory \(beats\)"
    with pytest.raises(ProgramError, match=pattern):
        analyse([*steps[:-1], same, END])


@pytest.mark.parametrize(("mode", "rows"), [(0, 2), (1, 3), (4, 3)])
def test_a_mode_decides_how_many_parameter_rows_are_read(mode, rows):
    steps = changed(chain(EDGE), 4, mode=mode)
    assert analyse(changed(steps, 2, count0=4 * rows)) is not None
    beat = 4 * rows - 1
    with pytest.raises(ProgramError, match=rf"drain\) reads undefined row {beat} of parameter"):
        analyse(changed(steps, 2, count0=beat))


def test_accumulating_onto_nothing_is_an_undefined_read():
    with pytest.raises(
        ProgramError, match=r"conv\) reads undefined rows 0-7 of accumulator bank 0"
    ):
        analyse(changed(chain(EDGE), 3, accumulate=1))


def test_padding_alone_reads_nothing():
    steps = changed(chain(EDGE), 3, origin_h=5)
    assert analyse(changed(steps, 0, count0=1)) is not None


def test_sources_and_destination_that_overlap_are_an_error():
    steps = [load(0, give=mask("vector")), maximum(0, 4, take=mask("load")), END]
    with pytest.raises(ProgramError, match=r"pool\) reads and writes rows 4-7 of activation"):
        analyse(steps)


def test_a_destination_row_written_twice_is_an_error():
    with pytest.raises(ProgramError, match=r"load\) writes a row of activation memory twice"):
        analyse([load(0, count1=2, local_stride1=7), END])


def test_a_store_into_the_program_is_an_error():
    steps = [load(0, give=mask("store")), store(0, base_reg=0, take=mask("load")), END]
    with pytest.raises(ProgramError, match=r"store\) stores into the program"):
        analyse(steps)


def test_an_engine_that_nobody_serves_is_a_deadlock():
    steps = without(chain(EDGE), 2, "give")
    pattern = (
        r"deadlock: instruction 3 \(conv\) on matrix waits for a token from load, which gives it "
        r"no more; instruction 4 \(drain\) on vector waits for a token from load, .*"
        r"instruction 4 \(drain\) on vector waits for a token from matrix, which would give it in "
        r"instruction 3"
    )
    with pytest.raises(ProgramError, match=pattern):
        analyse(steps)


def test_two_engines_that_wait_for_each_other_are_a_deadlock():
    steps = [
        load(0, give=mask("vector"), take=mask("vector")),
        maximum(0, BANK, take=mask("load"), give=mask("load")),
        END,
    ]
    pattern = r"load.* waits for a token from vector, .*pool.* waits for a token from load"
    with pytest.raises(ProgramError, match=pattern):
        analyse(steps)


def head_of_line(stores):
    """Stores that wait for a token from a load behind them in the program."""
    first = load(0, give=mask("store"))
    waiting = [store(0, 8 * i, take=mask("load")) for i in range(stores)]
    tokens = [load(8 * i + 8, give=mask("store")) for i in range(stores - 1)]
    return [first, *waiting, *tokens, END]


def test_a_token_from_behind_a_full_queue_is_a_head_of_line_deadlock():
    depth = EDGE.queue_depth
    analyse(head_of_line(1 + depth))
    pattern = (
        rf"deadlock: instruction 2 \(store\) on store waits for a token from load, which would "
        rf"give it in instruction {depth + 3} \(load\), not yet dispatched; dispatch waits at "
        rf"instruction {depth + 2} \(store\) for a place in the full queue of store"
    )
    with pytest.raises(ProgramError, match=pattern):
        analyse(head_of_line(2 + depth))


def test_tokens_left_at_the_end_of_a_whole_program_are_an_error():
    steps = [load(0, give=mask("vector")), END]
    with pytest.raises(
        ProgramError, match=r"1 tokens from load to vector are left at END, the last"
    ):
        analyse(steps)
    assert analyse(steps, partial=True) is not None


def test_presets_stand_for_tokens_of_earlier_layers():
    steps = [load(0, take=mask("vector")), END]
    presets = [0] * 16
    presets[2 * 4 + 0] = 1
    assert run(launch(EDGE, steps, semaphores=tuple(presets))).semaphores == (0,) * 16
    presets[2 * 4 + 0] = 2
    with pytest.raises(ProgramError, match=r"1 tokens from vector to load .* a preset"):
        run(launch(EDGE, steps, semaphores=tuple(presets)))


def test_a_program_that_is_wrong_runs_as_hardware_would_without_checks():
    steps = changed(chain(EDGE), 0, count0=5)
    result = Simulator(EDGE, checks=False).run(launch(EDGE, steps))
    assert result.error_code == 0


def test_dispatch_errors_leave_the_report_to_the_error_code():
    steps = [*chain(EDGE)[:3], load(EDGE.act_rows), END]
    result = run(launch(EDGE, steps))
    assert (result.error_code, result.error_index) == (3, 3)
