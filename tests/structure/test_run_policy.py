"""CI fails on a skip and on too few tests: seen by running pytest on planted test folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSES = "def test_passes(): pass\n"
SKIPS = "import pytest\n@pytest.mark.skip\ndef test_skips(): pass\n"
SKIPS_MODULE = "import pytest\npytest.importorskip('no_such_module')\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_fails(): assert False\n"


def run(folder: Path, *arguments: str, floor: int = 0, ci: bool = True, **files: str) -> str:
    """Run pytest on planted tests; return "status: output"."""
    tests = folder / "tests"
    (tests / "structure").mkdir(parents=True, exist_ok=True)
    (tests / "structure/collected_floor.txt").write_text(str(floor), encoding="ascii")
    shutil.copy(ROOT / "tests/conftest.py", tests)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in files.items():
        (tests / f"test_{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    environment = {**os.environ, "CI": "true" if ci else ""}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return f"{done.returncode}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_skip_fails_in_ci(workers: str, tmp_path: Path) -> None:
    said = run(tmp_path, workers, a=SKIPS, b=PASSES, c=SKIPS_MODULE)
    (problem,) = (line for line in said.splitlines() if "skipped in CI" in line)
    assert said.startswith("1:") and "test_b.py" not in problem
    assert "test_a.py" in problem and "test_c.py" in problem


def test_skip_passes_outside_ci(tmp_path: Path) -> None:
    assert run(tmp_path, a=SKIPS, b=PASSES, ci=False).startswith("0:")


def test_expected_failure_is_no_skip(tmp_path: Path) -> None:
    assert run(tmp_path, a=EXPECTED_FAILURE).startswith("0:")


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_too_few_tests_fail_in_ci(workers: str, tmp_path: Path) -> None:
    said = run(tmp_path, workers, "-m", "not campaign", a=PASSES, floor=2)
    assert said.startswith("1:") and "1 tests ran, the committed floor is 2" in said


def test_narrowed_run_ignores_the_floor(tmp_path: Path) -> None:
    assert run(tmp_path, "tests/test_a.py", a=PASSES, floor=2).startswith("0:")


def test_unknown_marker_is_an_error(tmp_path: Path) -> None:
    said = run(tmp_path, a="import pytest\n@pytest.mark.odd\ndef test_x(): pass\n")
    assert said.startswith("2:") and "odd" in said


def test_seed_is_a_property_of_the_junit_file(tmp_path: Path) -> None:
    assert run(tmp_path, "-n2", "--junitxml=out.xml", a=PASSES).startswith("0:")
    assert '<property name="accelsim_seed" value="1"' in (tmp_path / "out.xml").read_text("utf-8")


def test_cocotb_results_join_the_junit_file_and_planted_failures_do_not(tmp_path: Path) -> None:
    writes = """
from pathlib import Path
def test_writes():
    for name in ("good", "planted"):
        folder = Path("build/cosim/runs", name)
        folder.mkdir(parents=True)
        suite = '<testsuite name="x"><testcase name="check_%s"/></testsuite>' % name
        (folder / "results.xml").write_text("<testsuites>" + suite + "</testsuites>")
    (folder / "expected_failure").touch()
"""
    run(tmp_path, "-n2", "--junitxml=out.xml", a=writes)
    report = (tmp_path / "out.xml").read_text("utf-8")
    assert "test_writes" in report and "cocotb.good" in report and "check_good" in report
    assert "check_planted" not in report


def test_folder_decides_what_is_marked_rtl(tmp_path: Path) -> None:
    (tmp_path / "tests/rtl").mkdir(parents=True)
    (tmp_path / "tests/rtl/test_b.py").write_text(PASSES, encoding="utf-8")
    assert "1 passed, 1 deselected" in run(tmp_path, "-m", "rtl", a=PASSES)
