"""Regressions find planted bugs, refuse empty comparisons and say how to replay."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import RunResult
from accelsim.errors import AccelsimError, InputError
from accelsim.ops import Batch, Outcome, Stage, known_operators, make_case, operator_of, specs_of
from accelsim.ops.__main__ import main
from accelsim.ops.results import read_results
from accelsim.ops.session import Item, Selection, Session
from accelsim.ops.stages import run
from accelsim.simulate import BUGS, Simulator
from accelsim.spec.config import CONFIGS, Config

EDGE8 = CONFIGS["edge8"]


@pytest.fixture(scope="module")
def batch() -> Batch:
    specs = specs_of(operator_of("conv2d"), EDGE8, 1, 0)
    chosen = [spec for spec in specs if spec.name in ("plain", "beyond_weights")]
    return Batch([make_case("conv2d", spec, 1) for spec in chosen])


def simulated(batch: Batch, *backends: Any) -> Outcome:
    return run(batch, batch.cases["conv2d/beyond_weights"], Stage.SIM, EDGE8, backends)


def test_right_simulator_has_no_mismatch(batch: Batch) -> None:
    outcome = simulated(batch, Simulator(EDGE8).run)
    assert (outcome.mismatches, outcome.failed) == (0, False)
    assert outcome.elements > 0


def test_wrong_element_is_named_with_its_instruction(batch: Batch) -> None:
    def wrong(launch: Any) -> RunResult:
        result = Simulator(EDGE8).run(launch)
        return replace(
            result, dram={base: data ^ np.uint8(1) for base, data in result.dram.items()}
        )

    outcome = simulated(batch, wrong)
    assert outcome.mismatches == outcome.elements
    assert "expected" in outcome.detail and "store" in outcome.detail


def test_planted_bugs_of_the_instructions_used_are_seen(batch: Batch) -> None:
    seen = set()
    for bug in BUGS:
        try:
            found = simulated(batch, Simulator(EDGE8, bug=bug).run).failed
        except AccelsimError:  # the bug stopped the program, which is seen too
            found = True
        if found:
            seen.add(bug)
    expected = {name for name, bug in BUGS.items() if {"conv", "drain"} & set(bug.opcodes)}
    assert expected and expected <= seen, expected - seen


def test_records_that_differ_fail_though_the_output_is_equal(batch: Batch) -> None:
    def shifted(launch: Any) -> RunResult:
        result = Simulator(EDGE8).run(launch)
        records = (replace(result.records[0], digest=1), *result.records[1:])
        return replace(result, backend="rtl", records=records)

    outcome = simulated(batch, Simulator(EDGE8).run, shifted)
    assert outcome.failed and "records" in outcome.detail


@pytest.mark.parametrize("operator", known_operators())
@pytest.mark.parametrize("config", CONFIGS.values(), ids=str)
def test_case_names_are_unique_and_cover_the_edges(operator: str, config: Config) -> None:
    specs = specs_of(operator_of(operator), config, 1, 3)
    names = [spec.name for spec in specs]
    assert len(set(names)) == len(names)
    assert {"plain", "random0", "random1", "random2"} <= set(names)
    assert len(names) >= 8 and any("lanes" in name or "channel" in name for name in names)


def test_a_case_has_the_same_values_whatever_runs_beside_it() -> None:
    spec = specs_of(operator_of("add"), EDGE8, 5, 2)[-1]
    one, other = make_case("add", spec, 5), make_case("add", spec, 5)
    np.testing.assert_array_equal(one.inputs[0].values, other.inputs[0].values)
    assert np.any(make_case("add", spec, 6).inputs[0].values != one.inputs[0].values)


def test_stage_without_outcomes_is_reported_as_empty() -> None:
    session = Session(Selection(("add",), (EDGE8,), stages=(Stage.SIM, Stage.RTL)))
    item = Item("add", "plain", Stage.SIM, "edge8")
    session.outcomes.append((item, Outcome("add/plain", Stage.SIM, "edge8", 8, 0)))
    assert session.empty() == ["add, rtl on edge8"]
    assert "none!" in session.table()[1]


def test_replay_names_the_single_item() -> None:
    session = Session(Selection(("add",), (EDGE8,), seed=9))
    command = session.replay(Item("add", "one_row", Stage.STALLS, "edge8"))
    expected = "add --case one_row --stage rtl-stalls --config edge8 --seed 9"
    assert command == f"nox -s ops -- {expected}"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["conv3d"], "unknown operator 'conv3d': use conv"),
        (["conv2d", "--stage", "silicon"], "unknown stage 'silicon'"),
        (["conv2d", "--case", "one_roe"], "one_row"),
        (["conv2d", "--config", "edge9"], "unknown configuration 'edge9'"),
        (["conv2d", "--case", '{"name": "x", "kernels": 3}'], "has no 'kernels'"),
        (["conv2d", "--case", '{"name": "x", "kernel": 3}'], "kernel of a case of conv2d"),
        (["conv2d", "--case", '{"name": "x", "kernel": [9, 9]}'], "has no case like"),
        (["conv2d", "--case", '{"name": "x"'], "is no JSON"),
        (["conv2d", "--case", '{"name": "x", "channels": -5}'], "has no case like"),
        (["conv2d", "--case", '{"name": "x", "channels": 90000000000}'], "has no case like"),
        (["add", "--case", '{"name": "x", "size": [5, 0]}'], "has no case like"),
        (["add", "--case", '{"name": "x", "zeros": [1000]}'], "has no case like"),
        (["add", "--case", '{"name": "x", "spread": NaN}'], "has no case like"),
        (["add", "--case", '{"name": "x", "input_scale": -1}'], "has no case like"),
        (["add", "--case", '{"name": "x", "values": "large"}'], "has no case like"),
        (["add", "--case", '{"name": "x", "rounding": "up"}'], "has no case like"),
        (["add", "--bug", "none"], "no planted bug is called 'none'"),
        (["add", "--seed", "-1"], "not negative"),
        (["add", "--random", "-1"], "not negative"),
        (["conv2d", "add", "--case", '{"name": "x"}'], "behind the name of one operator"),
    ],
)
def test_bad_arguments_are_one_sentence_and_exit_code_two(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert named in error and error.count("\n") == 1


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results.json"


def command(results: Path, *arguments: str) -> int:
    """Two cases of relu on the simulator, as the command runs them."""
    xml = f"--junitxml={results.with_name('ops.xml')}"
    cases = ("--case", "plain", "--case", "one_row", "--stage", "sim")
    return main(["relu", *cases, "--results", str(results), xml, *arguments])


def test_command_prints_a_table_and_writes_junit(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(results) == 0
    assert "elements compared" in capsys.readouterr().out
    xml = results.with_name("ops.xml").read_text(encoding="utf-8")
    assert 'name="accelsim_seed" value="1"' in xml and 'tests="2"' in xml


def interrupt_at(monkeypatch: pytest.MonkeyPatch, number: int, hidden: bool = False) -> None:
    """A signal during item `number` of a session, which others' code may make another error."""
    run_item, count = Session.run, iter(range(99))

    def interrupted(session: Session, item: Item) -> Outcome:
        if next(count) == number:
            try:
                os.kill(os.getpid(), signal.SIGTERM if hidden else signal.SIGINT)
                time.sleep(10)
            except KeyboardInterrupt:
                if hidden:
                    raise RuntimeError("of a foreign function") from None
                raise
        return run_item(session, item)

    monkeypatch.setattr(Session, "run", interrupted)


@pytest.mark.parametrize("hidden", [False, True])
def test_interrupted_run_keeps_what_was_compared_and_is_resumed(
    hidden: bool, results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, 1, hidden)
        assert command(results) == 130
    assert capsys.readouterr().err == f"ops: interrupted; what was compared is in {results}\n"
    assert read_results(results).count(("relu", "sim", "edge8")).cases == 1
    assert command(results, "--resume") == 0
    assert "ops: 1 done before, 1 to do\n" in capsys.readouterr().out
    assert read_results(results).count(("relu", "sim", "edge8")).cases == 2


def test_resumed_run_repeats_what_failed_and_what_is_of_other_sources_or_seeds(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(results) == 0

    def left(*arguments: str) -> int:
        capsys.readouterr()
        assert command(results, "--list", *arguments) == 0
        return len(capsys.readouterr().out.splitlines())

    assert left("--resume") == 0 and left() == 2
    assert left("--resume", "same", "--seed", "2") == 2
    assert left("--resume", "any", "--seed", "2") == 0
    found = json.loads(results.read_text())
    found["operators"]["relu"]["sim"]["edge8"]["plain"]["mismatches"] = 1
    results.write_text(json.dumps(found))
    assert left("--resume") == 1


def test_item_that_cannot_be_run_is_recorded_as_failed(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(session: Session, item: Item, spec: Any, batch: Any) -> Outcome:
        raise InputError("this is broken")

    monkeypatch.setattr(Session, "_run", broken)
    assert command(results) == 1
    case = read_results(results).operators["relu"]["sim"]["edge8"]["plain"]
    assert (case["elements"], case["mismatches"]) == (0, 1)
    assert case["detail"] == "InputError: this is broken"


def test_case_that_does_not_compile_fails_alone(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Batch.program

    def program(batch: Batch, case: Any, config: Config) -> Any:
        if "relu/one_row" in batch.cases:
            raise RuntimeError("this one breaks all that are compiled with it")
        return make(batch, case, config)

    monkeypatch.setattr(Batch, "program", program)
    assert command(results) == 1
    cases = read_results(results).operators["relu"]["sim"]["edge8"]
    assert {name: case["mismatches"] for name, case in cases.items()} == {"plain": 0, "one_row": 1}


def test_campaign_has_every_claim_and_says_how_far_it_is(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(results, "--campaign", "--stage", "int8") == 0
    said = capsys.readouterr().out
    assert all(f"relu {config}: " in said for config in CONFIGS) and "3/3 " in said
    assert "8 passed" in said
    found = read_results(results).operators["relu"]
    assert set(found["sim"]) == set(CONFIGS) and set(found["int8"]) == {"edge8"}


def test_interrupt_before_anything_ran_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("accelsim.ops.__main__._run", interrupted)
    assert main(["relu"]) == 130
    assert capsys.readouterr().err == "ops: interrupted\n"


@pytest.mark.parametrize(
    "operators",
    [
        [],
        {"add": 3},
        {"add": {"sim": {"edge8": {"x": {}}}}},
        {"add": {"sim": {"edge8": {"x": {"elements": "9", "mismatches": 0, "attributed": 0}}}}},
    ],
)
def test_damaged_results_are_refused(operators: object, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"schema": "accelsim.ops/1", "operators": operators}))
    with pytest.raises(InputError, match="is damaged; delete it"):
        read_results(path)
