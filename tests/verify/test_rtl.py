"""The same on the real RTL: simulator, RTL and goldens agree, and a run is repeated with waves."""

from __future__ import annotations

import pytest

from tests.cli.invocation import invoke, report_of
from tests.verify import tiny

pytestmark = pytest.mark.rtl


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rtl")
    command = ("verify", f"{tiny.__file__}:labelled", "--rtl-images", "5", "--seed", "3")
    return folder, invoke(folder, *command, "--out", "r", "-q")


def test_simulator_and_rtl_equal_every_golden_and_each_other_cycle_by_cycle(run):
    folder, result = run
    assert result.code == 0, result.err + result.out
    report = report_of(folder / "r")
    for layer in report["layers"]:
        gates = [c for c in layer["compare"] if c["gate"]]
        assert {c["actual"] for c in gates} == {"sim", "rtl"}
        assert all(c["status"] == "equal" and c["elements"] for c in gates)
        assert layer["cycles"]["sim"] == layer["cycles"]["rtl"] > 0
    assert report["accuracy"]["samples"]["rtl"] == 5
    assert report["totals"]["cycles"]["sim"] == report["totals"]["cycles"]["rtl"]
    names = [check["name"] for check in report["checks"]]
    assert "all layers on rtl with random AXI stalls" in names
    assert (folder / "r" / "rtl" / "rtl.log").is_file()


def test_a_replay_repeats_one_layer_on_rtl_with_a_waveform(run):
    folder, _ = run
    (layer,) = report_of(folder / "r")["layers"]
    narrow = ("--layer", layer["name"], "--backend", "rtl", "--waves", "--out", "again", "-q")
    result = invoke(folder, "replay", "r", *narrow)
    assert result.code == 0, result.err + result.out
    again = report_of(folder / "again")
    (repeated,) = again["layers"]
    assert repeated["cycles"] == {"sim": None, "rtl": layer["cycles"]["rtl"]}
    assert again["inputs_sha256"] == report_of(folder / "r")["inputs_sha256"]
    (waves,) = (folder / "again").glob("waves.*")
    assert waves.stat().st_size > 1000
