"""The small commands: zoo, doctor, cache, asm and disasm, version."""

from __future__ import annotations

import json

import pytest

import accelsim
from accelsim import doctor
from accelsim.spec.config import CONFIGS
from accelsim.zoo import zoo_names
from tests.cli.invocation import invoke

TEXT = """\
0: load count0=4 local_stride0=1 base_reg=2
1: end
"""


def test_version_and_help_are_on_stdout(tmp_path):
    assert invoke(tmp_path, "--version").out == f"accelsim {accelsim.__version__}\n"
    text = invoke(tmp_path, "--help").out
    commands = "verify compile run replay asm disasm doctor zoo vectors cache ops"
    assert all(name in text for name in commands.split()) and "124" in text


def test_the_zoo_is_listed_with_names_that_verify_takes(tmp_path):
    names = invoke(tmp_path, "zoo").out.splitlines()
    assert names == [f"zoo:{name}" for name in zoo_names()]
    assert {"zoo:digits-resnet", "zoo:digits-detector"} <= {*names}


def test_disassembly_assembles_to_the_same_bytes(tmp_path):
    (tmp_path / "a.asm").write_text(TEXT)
    assert invoke(tmp_path, "asm", "a.asm", "--out", "a.bin").code == 0
    text = invoke(tmp_path, "disasm", "a.bin").out
    (tmp_path / "b.asm").write_text(text)
    assert invoke(tmp_path, "asm", "b.asm", "--out", "b.bin").code == 0
    first = (tmp_path / "a.bin").read_bytes()
    assert first == (tmp_path / "b.bin").read_bytes() and len(first) == 2 * 64


def test_a_wrong_line_is_named_and_nothing_is_written(tmp_path):
    (tmp_path / "a.asm").write_text("end\nload nonsense=3\n")
    result = invoke(tmp_path, "asm", "a.asm", "--out", "a.bin")
    assert result.code == 2 and "line 2" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.asm"]


@pytest.mark.parametrize(("required", "code"), [(True, 2), (False, 0)])
def test_the_doctor_fails_only_where_something_required_is_missing(
    tmp_path, monkeypatch, required, code
):
    lacking = doctor.Check("tool", False, required, "", "tool is not on PATH", "install tool")
    monkeypatch.setattr(doctor, "check_all", lambda machine: (lacking,))
    result = invoke(tmp_path, "doctor")
    assert result.code == code and "tool is not on PATH; install tool" in result.out
    assert json.loads(invoke(tmp_path, "doctor", "--json").out)[0]["remedy"] == "install tool"


def test_the_cache_is_listed_and_cleared(tmp_path, monkeypatch):
    from accelsim.cosim import build

    entry = build.CacheEntry("npu-0123", 2_500_000, "2026-01-01T00:00:00Z")
    monkeypatch.setattr(build, "cache_info", lambda: (entry,))
    monkeypatch.setattr(build, "cache_sizes", lambda: {"sessions": 1_000_000})
    monkeypatch.setattr(build, "cache_clear", lambda: 2_500_000)
    stored = tmp_path / "build" / "cache" / "zoo" / "weights.npz"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(bytes(500_000))
    listed = invoke(tmp_path, "cache", "info").out
    assert "npu-0123" in listed and "2.5 MB" in listed and "weights.npz" in listed
    assert "sessions/" in listed and "4.0 MB in" in listed
    assert invoke(tmp_path, "cache", "clear").out == "3.0 MB freed\n"
    assert not stored.exists()


def test_the_vectors_commands_are_there(tmp_path):
    text = invoke(tmp_path, "vectors", "--help").out
    assert all(name in text for name in ("list", "check", "export"))


def test_every_named_configuration_is_accepted(tmp_path):
    for name in CONFIGS:
        assert "m.pt2 does not exist" in invoke(tmp_path, "verify", "m.pt2", "--config", name).err


def test_a_trained_model_that_another_process_deletes_is_no_error(tmp_path, monkeypatch):
    from accelsim.cli import commands_tools
    from accelsim.cosim import build

    monkeypatch.setattr(build, "cache_root", lambda: tmp_path / "cosim")
    monkeypatch.setattr(commands_tools, "_zoo_files", lambda: [tmp_path / "gone.npz"])
    assert "0.0 kB in" in invoke(tmp_path, "cache", "info").out
    assert invoke(tmp_path, "cache", "clear").out == "0.0 kB freed\n"
