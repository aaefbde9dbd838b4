"""`accelsim replay` repeats a run exactly, says first what differs, and needs only a folder."""

from __future__ import annotations

import json
import shutil

import pytest

from accelsim.emit import program_from_bytes
from accelsim.verify import folder as run_folder
from tests.cli.invocation import invoke, report_of
from tests.verify import tiny


@pytest.fixture(scope="module", autouse=True)
def unchanged_sources():
    """Sources may be edited while tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "rtl_hash", lambda config: "rtl")
        patch.setattr(run_folder, "source_hash", lambda config: "sources")
        yield


def program_of(folder):
    """The only program of a run folder."""
    return program_from_bytes((folder / "accelsim_region_0.program").read_bytes())


@pytest.fixture(scope="module")
def original(tmp_path_factory, unchanged_sources):
    """A failed run of a model file of its own, whose folder was moved."""
    folder = tmp_path_factory.mktemp("original")
    shutil.copyfile(tiny.__file__, folder / "net.py")
    arguments = ("--backend", "sim", "--seed", "7", "--sim-bug", "conv_sign", "--dump-ir", "ir")
    result = invoke(folder, "verify", "net.py:tiny", *arguments, "--out", "run", "-q")
    (folder / "run").rename(folder / "moved")
    return folder, result


def test_a_replay_from_elsewhere_gives_the_same_report(original, tmp_path):
    folder, first = original
    result = invoke(tmp_path, "replay", folder / "moved", "--out", "again", "-q")
    assert result.code == first.code == 1 and "note:" not in result.err
    before, after = report_of(folder / "moved"), report_of(tmp_path / "again")
    for name in ("inputs_sha256", "program_sha256", "layers", "seed", "exercised", "backends"):
        assert after[name] == before[name], name
    assert result.last == "accelsim replay again"
    assert list((tmp_path / "again" / "ir").iterdir())


def test_a_replay_says_first_what_differs(original, tmp_path):
    folder, _ = original
    shutil.copytree(folder / "moved", tmp_path / "old")
    path = tmp_path / "old" / "run.json"
    stored = json.loads(path.read_text())
    stored["rtl_sha256"], stored["versions"]["torch"] = "0", "1.0"
    path.write_text(json.dumps(stored))
    arguments = ("--layer", "fc", "--out", "again")
    result = invoke(tmp_path, "replay", tmp_path / "old", *arguments)
    notes = result.err.splitlines()[:2]
    assert notes[0] == "note: the RTL differs from those of the run"
    assert notes[1].startswith("note: torch was 1.0 and is 2")
    report = report_of(tmp_path / "again")
    assert [layer["name"] for layer in report["layers"]] == ["fc"]
    assert any("--layer" in note for note in report["not_run"])


def test_a_replay_without_the_model_uses_the_quantized_one_of_the_folder(original, tmp_path):
    folder, _ = original
    shutil.copytree(folder / "moved", tmp_path / "old")
    path = tmp_path / "old" / "run.json"
    stored = json.loads(path.read_text())
    stored |= {"cwd": str(tmp_path / "nowhere"), "sim_bug": None}
    path.write_text(json.dumps(stored))
    result = invoke(tmp_path, "replay", "old", "--out", "again")
    report = report_of(tmp_path / "again")
    assert "net.py:tiny is gone; the quantized model of the run folder is used" in result.err
    assert result.code == 0 and "original model is not to be had" in report["notes"][0]
    assert report["inputs_sha256"] == report_of(folder / "moved")["inputs_sha256"]
    old, new = (program_of(place) for place in (folder / "moved", tmp_path / "again"))
    assert (old.words == new.words).all() and old.constants == new.constants


def test_a_replay_refuses_to_overwrite_what_it_repeats(original):
    folder, _ = original
    result = invoke(folder, "replay", "moved", "--out", "moved")
    assert result.code == 2 and "is the run to repeat" in result.err
    assert (folder / "moved" / "report.json").is_file()


def test_the_quantized_model_of_a_run_can_be_verified_itself(original, tmp_path):
    folder, _ = original
    model = folder / "moved" / "model.pt2"
    result = invoke(tmp_path, "verify", model, "--backend", "sim", "--out", "r", "-q")
    assert result.code == 0, result.err
    goldens = {
        (c["golden"], c["mode"])
        for layer in report_of(tmp_path / "r")["layers"]
        for c in layer["compare"]
        if c["gate"] and c["status"] == "equal"
    }
    assert ("framework", "isolated") in goldens and ("integer", "accumulated") in goldens
