"""Every kind of bad input ends in one sentence that names the thing, and exit code 2."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

import numpy as np
import pytest

from accelsim.spec.config import CONFIGS
from accelsim.verify import VerifyOptions
from tests.cli.invocation import invoke, report_of
from tests.verify import tiny

TINY = tiny.__file__

# (arguments, what the sentence names). Files are made by `folder`.
COMMANDS = [
    (["verify", "missing.pt2"], "model file missing.pt2 does not exist"),
    (["verify", "junk.pt2"], "junk.pt2 is not a torch.export archive"),
    (["verify", "zoo:nothing"], "zoo:digits-resnet"),
    (["verify", "model.mlmodel"], "FILE.py:FUNCTION"),
    (["verify", f"{TINY}:nothing"], "no function 'nothing'"),
    (["verify", f"{TINY}:integers"], "int16; float32, int8, uint8, int32 and int64 are supported"),
    (["verify", "m.pt2", "--backend", "gpu"], "unknown backend 'gpu': use sim or rtl"),
    (["run", "absent.pt2", "--backend", "gpu"], "unknown backend 'gpu': use sim or rtl"),
    (["verify", "m.pt2", "--backend", "sim", "--waves"], "add --backend rtl"),
    (["verify", "m.pt2", "--config", "huge"], "unknown configuration 'huge'"),
    (["verify", "m.pt2", "--config", "missing.toml"], "missing.toml"),
    (["verify", "m.pt2", "--seed", "-1"], "seed -1 is out of range"),
    (["verify", "m.pt2", "--seed", "one"], "Invalid value for '--seed'"),
    (["verify", "m.pt2", "--time-limit", "0"], "use more than 0"),
    (["verify", "m.pt2", "--time-limit", "nan"], "use more than 0"),
    (["verify", "m.pt2", "--time-limit", "inf"], "use at most"),
    (["run", "m.pt2", "--time-limit", "-1"], "use more than 0"),
    (["verify", "m.pt2", "--out", "file/below"], "cannot write file/below"),
    (["verify", "m.pt2", "--out", "occupied"], "occupied exists and is no run folder"),
    (["verify", "m.pt2", "--waive", "missing.toml"], "cannot read waivers missing.toml"),
    (["verify", "m.pt2", "--json", "nowhere/r.json"], "nowhere is not a folder"),
    (["verify", "m.pt2", "--json", "occupied"], "cannot write occupied: it is a folder"),
    (["verify", "--wave"], "No such option: --wave"),
    (["verfiy"], "No such command 'verfiy'"),
    (["replay", "occupied"], "occupied is no run folder: it has no run.json"),
    (["replay", "damaged"], "run.json is damaged"),
    (["replay", "foreign"], "not a run of this version"),
    (["replay", "mistyped"], "mistyped/run.json is not a run of this version"),
    (["replay", "numbered"], "numbered/run.json is not a run's description: model is 3"),
    (["disasm", "missing.program"], "cannot read missing.program"),
    (["disasm", "junk.pt2"], "junk.pt2: 5 bytes are neither a program nor instr"),
    (["disasm", "noise.bin"], "noise.bin: instruction 0: opcode 255"),
    (["asm", "junk.pt2", "--out", "x.bin"], "junk.pt2: line 1: unknown instruction 'junk'"),
    (["asm", "missing.asm", "--out", "x.bin"], "cannot read missing.asm"),
    (["run", "missing.so", "--input", "x.npz"], "library missing.so does not exist"),
    (["run", "alone.so", "--input", "x.npz"], "alone.json is missing"),
    (["run", "alone.so", "--config", "edge8"], "--config is not for alone.so"),
    (["run", "m.pt2", "--out", "x.txt"], "must end in .npz"),
    (["compile", "absent.pt2", "--out", "file/below"], "cannot write file/below"),
    (["compile", "m.pt2", "--out", "occupied"], "holds no compiled model"),
]


@pytest.fixture
def folder(tmp_path):
    for name in ("junk.pt2", "alone.so"):
        (tmp_path / name).write_text("junk\n")
    (tmp_path / "file").write_text("")
    for name, text in (("damaged", "{"), ("foreign", '{"model": "m", "config": {}}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    (tmp_path / "noise.bin").write_bytes(bytes([255]) * 64)
    (tmp_path / "mistyped").mkdir()
    (tmp_path / "numbered").mkdir()
    (tmp_path / "numbered" / "run.json").write_text('{"model": 3, "config": {}}')
    texts = {"model": "m.pt2", "source": None, "layer": None}
    request = {field.name: 3 for field in fields(VerifyOptions)} | texts | {"stored": None}
    request["config"] = asdict(CONFIGS["edge8"])
    (tmp_path / "mistyped" / "run.json").write_text(json.dumps(request))
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "thesis.txt").write_text("precious")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "named"),
    COMMANDS,
    ids=lambda x: None if isinstance(x, str) else " ".join(x)[-40:],
)
def test_bad_input_is_one_sentence_and_code_2(folder, arguments, named):
    result = invoke(folder, *arguments)
    lines = [line for line in result.err.splitlines() if line.startswith("accelsim: ")]
    assert result.code == 2 and len(lines) == 1 and named in lines[0]
    assert "Traceback" not in result.err and result.out == ""
    assert (folder / "occupied" / "thesis.txt").read_text() == "precious"
    assert not list(folder.rglob("*.partial*"))


def test_a_failure_inside_a_run_leaves_a_whole_report_and_the_way_to_repeat_it(folder):
    result = invoke(folder, "verify", "missing.pt2", "--out", "r")
    report = report_of(folder / "r")
    assert (report["status"], report["exit_code"], report["layers"]) == ("error", 2, [])
    assert result.last == report["replay"] == "accelsim replay r"
    assert (folder / "r" / "report.html").is_file() and (folder / "r" / "log.txt").is_file()


def test_debug_shows_where_it_happened_and_may_stand_behind_the_command(folder):
    result = invoke(folder, "verify", "missing.pt2", "--debug")
    assert result.code == 2 and "ModelError" in result.err


def _save(path, **arrays):
    np.savez(path, **arrays)


INPUTS = [
    (lambda p: p.write_text("junk"), "not an intact .npz or .npy"),
    (lambda p: None, "cannot read input"),
    (lambda p: _save(p, other=np.zeros((1, 24), np.float32)), "the model's inputs are"),
    (lambda p: _save(p, input=np.zeros((2, 24), np.float32)), "expected float32 of shape (1, 24)"),
    (lambda p: _save(p, input=np.zeros((1, 24))), "is float64 of shape"),
    (lambda p: _save(p, input=np.full((1, 24), np.nan, np.float32)), "not finite"),
]


@pytest.fixture(scope="module")
def signature():
    from accelsim.verify.input_files import Signature

    return Signature(("input",), ((1, 24),), ("float32",))


@pytest.mark.parametrize(("make", "named"), INPUTS)
def test_a_wrong_input_file_is_named_with_what_was_expected(tmp_path, signature, make, named):
    from accelsim.errors import InputError
    from accelsim.verify.input_files import read_input

    path = tmp_path / "x.npz"
    make(path)
    with pytest.raises(InputError) as caught:
        read_input(path, signature)
    assert named in str(caught.value) and str(path) in str(caught.value)


def test_a_npy_feeds_a_model_of_one_input(tmp_path, signature):
    from accelsim.verify.input_files import read_input

    path = tmp_path / "x.npy"
    np.save(path, np.full((1, 24), 3, np.float32))
    assert read_input(path, signature)["input"].sum() == 72
