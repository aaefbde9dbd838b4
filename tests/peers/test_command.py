"""The command: its document, its exit codes, and the list of what is out of scope."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from accelsim.errors import InputError, ToolError
from accelsim.peers import __main__ as command
from accelsim.peers import scope, suites
from accelsim.peers.outcome import FAILED, OUT_OF_SCOPE, PASSED, Outcome, document, table
from accelsim.peers.scope import Entry, judged, read_list, unused

OUT = Outcome("s", "a", OUT_OF_SCOPE, "too large")
IN = Outcome("s", "b", PASSED, elements=4)
TABLE = '[[out_of_scope]]\nsuite = "s"\nreason = "r"\n'


def test_document_counts_by_suite() -> None:
    found = document(["s", "t"], [OUT, IN, Outcome("t", "c", FAILED, "wrong")])
    assert found == {
        "schema": "accelsim.peers/1",
        "suites": {
            "s": {
                "passed": 1,
                "failed": 0,
                "out_of_scope": [{"case": "a", "reason": "too large"}],
            },
            "t": {"passed": 0, "failed": 1, "out_of_scope": []},
        },
    }


def test_table_states_reasons() -> None:
    more = Outcome("s", "d", OUT_OF_SCOPE, "too large")
    assert "s: 2 out of scope, too large: a, d" in table(["s"], [OUT, IN, more])


def test_table_states_differences_with_their_cause() -> None:
    near = Outcome("s", "c", PASSED, "", 10, 2, 1, "the peer adds in another order")
    lines = list(table(["s"], [near, IN]))
    assert "s: 2 of 10 elements differ, by 1 at most: the peer adds in another order" in lines


@pytest.mark.parametrize("case", ["a", "*"])
def test_listed_case_is_out_of_scope(case: str) -> None:
    entries = [Entry("s", case, "too large")]
    assert judged([OUT, IN], entries) == [OUT, IN]
    assert list(unused([OUT, IN], entries)) == []


@pytest.mark.parametrize(
    "entry",
    [Entry("s", "a", "too small"), Entry("t", "a", "too large"), Entry("s", "b", "too large")],
)
def test_case_that_is_not_listed_fails(entry: Entry) -> None:
    (outcome,) = judged([OUT], [entry])
    assert outcome.status == FAILED and outcome.detail.endswith("not listed: too large")


def test_entry_that_no_case_needs_fails() -> None:
    (outcome,) = unused([OUT, IN], [Entry("s", "b", "too large"), Entry("s", "gone", "x")])
    assert (outcome.case, outcome.status) == ("b", FAILED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{TABLE}cases = ["a"]\nwhy = "x"\n', "why"),
        (TABLE, "cases"),
        ('[[case]]\nsuite = "s"\n', "case"),
        ("[", "has suite, reason and cases"),
    ],
)
def test_list_with_a_wrong_field_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"list\.toml: .*{said}"):
        read_list(path)


def planted(data: Path, folder: Path, *cases: str) -> Path:
    """A data folder with some cases under other names."""
    for number, case in enumerate(cases):
        shutil.copytree(data / "cmsis_nn" / case, folder / "cmsis_nn" / f"case_{number}")
    return folder


def test_command_runs_another_folder_of_the_same_layout(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = planted(data, tmp_path / "data", "mul", "basic", "maxpooling", "avgpooling_1")
    target = tmp_path / "out" / "peers.json"
    arguments = ["--data", str(folder), "--suite", "cmsis_nn", "--json", str(target)]
    assert command.main(arguments) == 0
    found = json.loads(target.read_text(encoding="utf-8"))
    assert found["suites"] == {"cmsis_nn": {"passed": 4, "failed": 0, "out_of_scope": []}}
    assert "cmsis_nn" in capsys.readouterr().out


def test_command_fails_with_a_case_that_it_cannot_read(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = planted(data, tmp_path / "data", "mul", "add")
    (folder / "cmsis_nn" / "case_1" / "input1_data.h").unlink()
    assert command.main(["--data", str(folder), "--suite", "cmsis_nn"]) == 1
    said = capsys.readouterr().out
    assert "FAILED cmsis_nn/case_1" in said and "--case case_1" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--suite", "nothing"],
        ["--data", "nowhere/at/all"],
        ["--suite", "cmsis_nn", "--case", "nothing"],
        ["--config", "nothing"],
        ["--suite", "cmsis_nn", "--json", "/dev/null/there/is/none.json"],
        ["--suite", "cmsis_nn", "--json", "/dev"],
    ],
)
def test_command_that_cannot_run_says_why_and_exits_2(
    arguments: list[str], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--data", str(data), *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_interrupted_run_is_one_sentence(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    assert command.main(["--data", str(data), "--suite", "cmsis_nn"]) == 130
    assert capsys.readouterr().err == "accelsim.peers: interrupted\n"


def test_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("no", name="ai_edge_litert.interpreter")

    monkeypatch.setattr(suites, "import_module", missing)
    with pytest.raises(ToolError, match="suite cmsis_nn needs the package ai_edge_litert"):
        suites.discover("cmsis_nn", Path())


def test_committed_list_has_only_known_suites() -> None:
    assert {entry.suite for entry in read_list(scope.LIST)} <= set(suites.SUITES)
