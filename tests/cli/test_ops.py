"""`accelsim ops`: the matrix comes from the code, its counts from results, gaps are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accelsim.legalize import operators as legalize_operators
from accelsim.ops import Batch, Outcome, Stage, known_operators, make_case, operator_of
from accelsim.ops.matrix import claimed_cells
from accelsim.ops.missing import missing_code, missing_rooms
from accelsim.ops.results import RESULTS, merge_results
from accelsim.reference import operators as reference_operators
from accelsim.schedule import operators as schedule_operators
from accelsim.sources import PACKAGE, rtl_root, vectors_root
from accelsim.spec.config import CONFIGS
from tests.cli.invocation import invoke


def record(folder: Path, *stages: Stage) -> Path:
    """A results file with two elements compared in each of these stages of add."""
    path = folder / RESULTS
    used = operator_of("add").facts.instructions
    rows = [
        (name, "plain", config, Outcome("add/plain", Stage(stage), config, 2, 0, "", "", 0, used))
        for name, stage, config in claimed_cells(operator_of("add"))
        if stage in stages
    ]
    merge_results(path, rows)
    return path


def test_matrix_has_every_operator_and_says_what_was_not_run(tmp_path):
    result = invoke(tmp_path, "ops")
    assert result.code == 0 and "not run" in result.out
    assert all(name in result.out for name in known_operators())
    table = json.loads(invoke(tmp_path, "ops", "--json").out)
    assert table["schema"] == "accelsim.ops.matrix/1"
    assert set(table["operators"]) == set(known_operators())


def test_counts_come_from_the_results(tmp_path):
    record(tmp_path, Stage.SIM)
    row = json.loads(invoke(tmp_path, "ops", "add", "--json").out)["operators"]["add"]
    assert row["compared"]["sim"]["base16"]["elements"] == 2
    assert row["compared"]["rtl"]["base16"] == "not run"
    assert row["runs_on"] == ["load", "vector", "store"]


def test_json_has_each_fact_that_the_table_shows(tmp_path):
    row = json.loads(invoke(tmp_path, "ops", "conv2d", "--json").out)["operators"]["conv2d"]
    shown = invoke(tmp_path, "ops", "conv2d").out
    wanted = {"types", "limits", "runs_on", "rounding", "bit_exact", "compared", "instructions"}
    assert wanted <= set(row)
    assert all(word in shown for word in (*row["runs_on"], *row["rounding"], *row["bit_exact"]))


def test_missing_names_empty_stages_and_fails(tmp_path):
    record(tmp_path, *(stage for stage in Stage if stage is not Stage.STALLS))
    result = invoke(tmp_path, "ops", "add", "--missing")
    assert result.code == 1
    lines = result.out.splitlines()
    wanted = [f"nothing was compared in stage rtl-stalls on {c}" for c in ("edge8", "base16")]
    assert all(any(line == f"add: {text}" for line in lines) for text in wanted)
    assert not any("stage sim" in line for line in lines)


def test_nothing_missing_is_said(tmp_path):
    record(tmp_path, *Stage)
    result = invoke(tmp_path, "ops", "add", "--missing")
    assert (result.code, result.out) == (0, "add: nothing is missing\n")


@pytest.mark.parametrize("flags", [(), ("--json",), ("--missing",)])
def test_unknown_operator_is_refused_with_near_names(tmp_path, flags):
    result = invoke(tmp_path, "ops", "conv3d", *flags)
    assert result.code == 2 and result.out == ""
    assert result.last.startswith("accelsim: unknown operator 'conv3d': use ")
    assert "conv2d" in result.last and "softmax" not in result.last


def test_an_interrupt_while_an_extension_is_read_is_said(tmp_path):
    text = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n"
    (tmp_path / "slow.py").write_text(text)
    result = invoke(tmp_path, "ops", "add", "--extend", "slow.py")
    assert (result.code, result.err) == (130, "accelsim: interrupted\n")


def test_results_of_another_schema_are_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"schema": "other"}')
    result = invoke(tmp_path, "ops", "--results", "x.json")
    assert result.code == 2 and "schema accelsim.ops/1" in result.last
    assert invoke(tmp_path, "ops", "--results", "y.json").code == 2


@pytest.fixture(scope="module")
def plain():
    """The plain case of add, alone."""
    case = make_case("add", operator_of("add").edges(CONFIGS["edge8"])[0], 1)
    return lambda: (Batch([case]), case)


def test_rooms_that_know_an_operator_are_not_named(plain):
    assert list(missing_rooms(*plain(), vectors_root() / "edge8")) == []


def test_rooms_that_do_not_know_an_operator_are_named(plain, monkeypatch, tmp_path):
    (text,) = missing_rooms(*plain(), tmp_path)
    assert text == "vectors: no committed case of accelsim/vectors/operators has a layer add"
    monkeypatch.setattr(schedule_operators, "_known", dict)
    (text,) = missing_rooms(*plain(), tmp_path)
    assert text.startswith("schedule: ") and "no schedule for Add" in text
    monkeypatch.setattr(legalize_operators, "_discovered", lambda: ())
    monkeypatch.setattr(reference_operators, "_registry", dict)
    rooms = [text.split(":")[0] for text in missing_rooms(*plain(), tmp_path)]
    assert rooms == ["reference", "legalize"]


def test_instructions_without_code_are_named(tmp_path):
    assert list(missing_code("add", PACKAGE, rtl_root())) == []
    assert [text.split(":")[0] for text in missing_code("add", tmp_path, tmp_path)] == [
        "simulate",
        "rtl",
    ]
    assert list(missing_code("fourier", PACKAGE, rtl_root())) == [
        "spec: the instruction table has no fourier"
    ]
