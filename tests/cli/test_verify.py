"""`accelsim verify`: streams, exit codes, report.json, and what a run folder holds."""

from __future__ import annotations

import functools
import json
import os
import signal

import numpy as np
import pytest

from accelsim.cli import execution
from accelsim.codegen import compile_model
from accelsim.emit import compile_region
from accelsim.errors import ProgramError
from accelsim.verify import run as verification
from tests.cli.invocation import invoke, report_of
from tests.verify import tiny

LINEAR = f"{tiny.__file__}:linear"
LABELLED = f"{tiny.__file__}:labelled"
TINY = f"{tiny.__file__}:tiny"
SIM = ("--backend", "sim")


@pytest.fixture(scope="module")
def passed(tmp_path_factory):
    """A passed run on the simulator, with its JSON in a file."""
    folder = tmp_path_factory.mktemp("passed")
    result = invoke(
        folder, "verify", LABELLED, *SIM, "--out", "r", "--json", "r.json", "--dump-ir", "ir"
    )
    return folder, result


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A run with a planted bug, its JSON on stdout."""
    folder = tmp_path_factory.mktemp("failed")
    arguments = ("verify", LINEAR, *SIM, "--out", "r", "--sim-bug", "drain_clamp", "-q")
    return folder, invoke(folder, *arguments, "--json", "-")


def test_a_passed_run_ends_with_its_verdict_on_stdout_and_code_0(passed):
    _, result = passed
    assert result.code == 0
    last = result.out.splitlines()[-1]
    assert last.startswith("PASSED: ") and "0 mismatches, 0 waivers, 0 host layers" in last
    assert "\x1b" not in result.out + result.err
    assert result.err.splitlines()[0].startswith("loading") and "loading" not in result.out


def test_a_run_folder_holds_all_that_a_replay_needs(passed):
    folder, _ = passed
    names = {path.name for path in (folder / "r").iterdir()}
    wanted = "report.json report.html run.json log.txt inputs.npz model.pt2 model.so"
    assert {*wanted.split(), "accelsim_region_0.program"} <= names
    assert json.loads((folder / "r.json").read_text()) == report_of(folder / "r")
    assert {path.name[:2] for path in (folder / "ir").iterdir()} >= {"01", "05"}


def test_the_report_keeps_its_contract(passed):
    report = report_of(passed[0] / "r")
    wanted = (
        "schema model config status exit_code seed versions inputs_sha256 program_sha256 replay"
    )
    assert {*wanted.split(), "layers", "exercised", "totals", "accuracy"} <= report.keys()
    assert report["schema"] == "accelsim.verify/2" and report["status"] == "passed"
    (layer,) = report["layers"]
    wanted = "name op members placement waived elements macs tiles compare cycles"
    assert set(wanted.split()) <= layer.keys()
    wanted = "actual golden mode elements mismatches max_abs_diff status gate bound cause first"
    assert all(set(wanted.split()) <= c.keys() for c in layer["compare"])
    assert (layer["elements"], layer["macs"]) == (9, 24 * 9)
    found = {(c["golden"], c["mode"]): c["gate"] for c in layer["compare"]}
    assert found == {
        ("integer", "isolated"): True,
        ("framework", "isolated"): True,
        ("integer", "accumulated"): True,
        ("framework", "accumulated"): False,
        ("tvm", "accumulated"): False,
    }
    assert (report["accuracy"]["metric"], report["accuracy"]["float"]) == ("top1", 1.0)
    assert report["accuracy"]["samples"] == {"float": 40, "framework": 40, "integer": 40, "sim": 40}
    assert report["accuracy"]["agreement"] == {"sim": [40, 40]}
    assert report["framework"] == {
        "name": "torch",
        "golden": "torch",
        "title": "PyTorch's int8 kernels",
    }
    assert report["self_test"]["caught"]


def test_json_on_stdout_is_nothing_but_json(failed):
    _, result = failed
    report = json.loads(result.out)
    assert result.code == report["exit_code"] == 1 and report["status"] == "failed"


def test_a_verdict_is_the_exit_code_even_if_nobody_reads_the_report(tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise BrokenPipeError

    gone = []
    monkeypatch.setattr(execution, "print_report", broken)
    monkeypatch.setattr(execution, "nobody_reads", gone.append)
    arguments = ("verify", LINEAR, *SIM, "--out", "r", "--sim-bug", "drain_clamp", "-q")
    result = invoke(tmp_path, *arguments, "--no-self-test")
    assert len(gone) == 1 and result.code == 1 and result.last == "accelsim replay r"


def test_json_that_cannot_be_written_loses_no_verdict(tmp_path):
    arguments = ("verify", LINEAR, *SIM, "--out", "r", "-q", "--no-self-test")
    result = invoke(tmp_path, *arguments, "--json", "/proc/report.json")
    assert result.code == 2 and "cannot write /proc/report.json" in result.err
    assert result.out.splitlines()[-1].startswith("PASSED: ")


def test_what_a_model_prints_is_not_in_the_json_on_stdout(tmp_path):
    arguments = ("run", f"{tiny.__file__}:talking", *SIM, "-q", "--json", "-")
    result = invoke(tmp_path, *arguments)
    assert result.code == 0 and "talking" in result.err
    assert json.loads(result.out)["backend"] == "sim"


@pytest.mark.parametrize("command", ["verify", "run", "compile"])
def test_a_model_that_calls_exit_does_not_pass(tmp_path, command):
    result = invoke(
        tmp_path, command, f"{tiny.__file__}:leaving", *SIM[: 2 * (command != "compile")]
    )
    assert result.code == 2 and "called sys.exit(0)" in result.err and result.out == ""


def test_a_failure_ends_with_the_command_that_repeats_it(failed):
    folder, result = failed
    assert result.err == "accelsim replay r\n"
    (layer,) = report_of(folder / "r")["layers"]
    first = layer["compare"][0]["first"]
    assert first["tile"] >= 0 and first["text"].startswith("store")


def refuse(name):
    """A region compiler to which one layer is too large."""

    def compile_one(region, config):
        if any(layer.name == name for layer in region.layers):
            raise ProgramError("no tiling fits")
        return compile_region(region, config)

    return functools.partial(compile_model, compile_one=compile_one)


def test_a_layer_on_the_host_fails_unless_it_is_waived(tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "compile_model", refuse("1"))
    command = ("verify", f"{tiny.__file__}:pair", *SIM, "-q", "--out")
    result = invoke(tmp_path, *command, "r")
    (host,) = [x for x in report_of(tmp_path / "r")["layers"] if x["placement"] == "host"]
    assert result.code == 1 and "1 host layer" in result.out.splitlines()[-1]
    assert host["name"] == "1" and "no tiling fits" in result.out
    text = '[[waive]]\nlayer = "1"\ngolden = "host"\nreason = "known"\nexpires = 2099-01-01\n'
    (tmp_path / "w.toml").write_text(text)
    result = invoke(tmp_path, *command, "s", "--waive", "w.toml")
    assert result.code == 0 and "1 waiver, 1 host layer" in result.out.splitlines()[-1]
    report = report_of(tmp_path / "s")
    assert [x["waived"] for x in report["layers"]] == [None, "known (until 2099-01-01)"]
    assert (tmp_path / "s" / "waivers.toml").read_text() == text
    result = invoke(tmp_path, "verify", LINEAR, *SIM, "-q", "--waive", "w.toml")
    assert result.code == 1 and "waiver of layer '1'" in result.out


def test_an_operator_of_the_host_between_two_layers_fails_unless_it_is_waived(tmp_path):
    command = ("verify", f"{tiny.__file__}:log_softmax", *SIM, "-q", "--out")
    result = invoke(tmp_path, *command, "r")
    layers = report_of(tmp_path / "r")["layers"]
    assert result.code == 1 and [x["name"] for x in layers] == ["0", "1", "2"]
    assert [x["placement"] for x in layers] == ["npu", "host", "npu"]
    gates = [c["status"] for x in layers for c in x["compare"] if c["gate"]]
    assert gates == ["equal"] * 6
    text = '[[waive]]\nlayer = "1"\ngolden = "host"\nreason = "known"\nexpires = 2099-01-01\n'
    (tmp_path / "w.toml").write_text(text)
    result = invoke(tmp_path, *command, "s", "--waive", "w.toml")
    assert result.code == 0 and "1 waiver, 1 host layer" in result.out.splitlines()[-1]


STOPS = [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGALRM, 124)]


@pytest.mark.parametrize(("number", "code"), STOPS)
def test_a_run_that_is_stopped_keeps_the_layers_that_it_finished(
    tmp_path, monkeypatch, number, code
):
    seen = []
    check_layer = verification.check_layer

    def stop_at_the_third(*arguments):
        if len(seen) == 2:
            seen.append(report_of(tmp_path / "r"))  # what a kill would leave
            os.kill(os.getpid(), number)
        seen.append(None)
        return check_layer(*arguments)

    monkeypatch.setattr(verification, "check_layer", stop_at_the_third)
    monkeypatch.setattr("accelsim.verify.verification.REPORT_SHARE", 1e9)  # after each layer
    limit = ("--time-limit", "3600")
    result = invoke(tmp_path, "verify", TINY, *SIM, "--out", "r", "-q", *limit)
    report = report_of(tmp_path / "r")
    assert (result.code, report["exit_code"], report["status"]) == (code, code, "incomplete")
    assert [layer["name"] for layer in report["layers"]] == ["conv", "depthwise"]
    assert result.last == "accelsim replay r"
    killed = seen[2]
    assert killed["status"] == "incomplete" and len(killed["layers"]) == 2


def test_an_internal_error_is_code_3_with_its_traceback_in_the_log(tmp_path, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("of no interest")

    monkeypatch.setattr(verification, "choose_input", broken)
    result = invoke(tmp_path, "verify", LINEAR, *SIM, "--out", "r", "-q")
    assert result.code == 3 and "internal error: of no interest; see r/log.txt" in result.err
    assert "Traceback" not in result.err and result.last == "accelsim replay r"
    assert "ZeroDivisionError" in (tmp_path / "r" / "log.txt").read_text()
    assert report_of(tmp_path / "r")["status"] == "error"


def test_compile_writes_programs_that_run_in_a_library_of_their_own(tmp_path):
    result = invoke(tmp_path, "compile", LINEAR, "--out", "c", "-q")
    names = {path.name for path in (tmp_path / "c").iterdir()}
    stem = "accelsim_region_0"
    assert result.code == 0 and {f"{stem}.{x}" for x in ("program", "asm", "json")} <= names
    listing = invoke(tmp_path, "disasm", f"c/{stem}.program").out
    assembled = invoke(tmp_path, "asm", f"c/{stem}.asm", "--out", "a.bin")
    assert assembled.code == 0 and invoke(tmp_path, "disasm", "a.bin").out == listing
    module, values = tiny.linear()
    np.save(tmp_path / "x.npy", values.numpy())
    run = ("run", "c/model.so", "--input", "x.npy", "--out", "y.npz", "--json", "-", "-q")
    result = invoke(tmp_path, *run)
    about = json.loads(result.out)
    assert result.code == 0 and about["cycles"][stem] > 0
    difference = np.load(tmp_path / "y.npz")["output0"] - module(values).detach().numpy()
    assert np.abs(difference).max() < 0.02  # two steps of the output's scale
    assert invoke(tmp_path, "run", "c/model.so").code == 2


def test_a_model_runs_without_being_compiled_first(tmp_path):
    result = invoke(tmp_path, "run", LINEAR, "-q")
    assert result.code == 0 and "output0: float32 of shape (1, 9)" in result.out


def test_without_a_compiler_a_run_ends_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    result = invoke(tmp_path, "verify", LINEAR, *SIM, "--out", "r", "-q")
    assert result.code == 2 and "accelsim: g++ is missing: install" in result.err
    assert result.last == "accelsim replay r"
