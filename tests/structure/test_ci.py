"""`.ci/run` runs every session, pytest once, and fails if one of them failed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOX = """#!/bin/sh
echo "$@" >> calls.txt
case "$*" in *"$FAILS"*) exit 1 ;; esac
"""
PYTHON = """#!/bin/sh
mkdir -p build/nox/bin
cp stubs/nox build/nox/bin/nox
cp stubs/nothing build/nox/bin/pip
"""
NOTHING = "#!/bin/sh\n"


def run_ci(folder: Path, fails: str) -> tuple[int, list[str]]:
    """Status of the script with nox replaced, and the calls of nox."""
    stubs = folder / "stubs"
    stubs.mkdir()
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    programs = dict.fromkeys(("nothing", "chromium", "g++", "make", "perl", "apt-get"), NOTHING)
    for name, text in {**programs, "nox": NOX, "python3": PYTHON}.items():
        (stubs / name).write_text(text, encoding="ascii")
        (stubs / name).chmod(0o755)
    environment = {**os.environ, "FAILS": fails}
    environment["PATH"] = f"{stubs}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(["bash", ".ci/run"], cwd=folder, env=environment, check=False)
    return done.returncode, (folder / "calls.txt").read_text("utf-8").splitlines()


def test_all_sessions_run_and_pytest_once(tmp_path: Path) -> None:
    status, calls = run_ci(tmp_path, "nothing fails")
    assert status == 0
    words = " ".join(calls).split()
    assert {"lint", "types", "gen", "synth", "vectors", "peers", "verify"} <= set(words)
    assert words.count("tests") == 1 and words[-1] == "tests"
    assert any(call.endswith("verify -- zoo:digits-resnet --config base16") for call in calls)


@pytest.mark.parametrize("session", ["lint", "base16", "tests"])
def test_a_failed_session_fails_the_run_after_the_others(session: str, tmp_path: Path) -> None:
    status, calls = run_ci(tmp_path, session)
    assert status == 1
    assert len(calls) == 3
