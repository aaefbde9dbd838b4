"""One function a requirement: a `Machine` comes in, a `Check` goes out.

A `Machine` holds the questions that can be put to a computer, so that a test can answer them. The
search for Verilator is co-simulation's own: what the doctor finds is what a build will use.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from accelsim import sources
from accelsim.cosim import tools
from accelsim.errors import AccelsimError

PYTHON_MIN = (3, 11)
# Environment, compiled models and run folders of the default sessions, with room to spare.
DISK_MIN_BYTES = 4 * 1024**3
EXTRAS = {
    "compile": ("apache-tvm", "torch", "scikit-learn"),
    "cosim": ("cocotb",),
    "report": ("jinja2", "matplotlib"),
}
PROGRAMS = ("g++", "make", "perl", "ar")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check. `problem` and `remedy` are empty sentences where `ok` is true."""

    name: str
    ok: bool
    required: bool
    found: str  # version, path or size; "" where nothing was found
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Questions about a computer."""

    program: Callable[[str], str | None]  # name → path
    first_line: Callable[[str], str]  # path → first line that it prints for --version
    package: Callable[[str], str | None]  # distribution → version
    libpython: Callable[[], str | None]  # path of this Python's shared library
    verilator: Callable[[], tuple[Path, Path | None, str]]  # raises ToolError
    fst_headers: Callable[[], bool]
    rtl: Callable[[], Path]  # raises ToolError
    free_bytes: Callable[[Path], int]
    python: tuple[int, int]


def package_version(name: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def first_line(path: str) -> str:
    """First line with text of `path --version`, or what went wrong."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run: {error}"
    return next((line for line in (done.stdout or done.stderr).splitlines() if line.strip()), "")


def free_bytes(folder: Path) -> int:
    """Bytes free on the file system of `folder` or of its nearest parent that exists."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def shared_library() -> str | None:
    """Path of this Python's shared library, or None; cocotb's own search, where it is installed."""
    try:
        from find_libpython import find_libpython
    except ImportError:
        return None
    found: str | None = find_libpython()
    return found


def this_machine() -> Machine:
    """The computer that this process runs on."""
    return Machine(
        program=shutil.which,
        first_line=first_line,
        package=package_version,
        libpython=shared_library,
        verilator=tools.find_verilator,
        fst_headers=tools.can_write_fst,
        rtl=sources.rtl_root,
        free_bytes=free_bytes,
        python=sys.version_info[:2],
    )


def check_python(machine: Machine) -> Check:
    """Python is new enough."""
    found = ".".join(map(str, machine.python))
    if machine.python >= PYTHON_MIN:
        return Check("Python", True, True, found)
    wanted = ".".join(map(str, PYTHON_MIN))
    problem = f"Python {found} is older than {wanted}"
    return Check("Python", False, True, found, problem, f"run accelsim with Python {wanted}")


def check_program(machine: Machine, name: str) -> Check:
    """A program that a build of the RTL runs is on the search path."""
    path = machine.program(name)
    if path is None:
        return Check(name, False, True, "", f"{name} is not on PATH", tools.PACKAGES[name])
    return Check(name, True, True, f"{machine.first_line(path)} ({path})")


def check_verilator(machine: Machine) -> Check:
    """Verilator is there, and new enough for cocotb."""
    try:
        path, _, version = machine.verilator()
    except AccelsimError as error:
        problem, _, remedy = str(error).partition(": ")
        return Check("Verilator", False, True, "", problem, remedy.rstrip("."))
    return Check("Verilator", True, True, f"{version} ({path})")


def check_package(machine: Machine, name: str, extra: str) -> Check:
    """A Python package of an extra is installed."""
    version = machine.package(name)
    if version is None:
        remedy = f"pip install 'accelsim[{extra}]'"
        return Check(name, False, True, "", f"the Python package {name} is not installed", remedy)
    return Check(name, True, True, version)


def check_libpython(machine: Machine) -> Check:
    """The simulation can load Python: some Pythons come without their shared library."""
    path = machine.libpython()
    if path is not None:
        return Check("libpython", True, True, path)
    remedy = "install it (Debian: libpython3-dev) or use a Python built with --enable-shared"
    problem = "the shared library of this Python, into which cocotb loads, is not to be found"
    return Check("libpython", False, True, "", problem, remedy)


def check_rtl(machine: Machine) -> Check:
    """The RTL sources are where the package looks for them."""
    try:
        return Check("RTL sources", True, True, str(machine.rtl()))
    except AccelsimError as error:
        return Check("RTL sources", False, True, "", str(error), "install accelsim again")


def check_disk(machine: Machine, folder: Path) -> Check:
    """The file system of the build folder has room for compiled models and runs."""
    free = machine.free_bytes(folder)
    found = f"{free / 1024**3:.1f} GiB free at {folder}"
    if free >= DISK_MIN_BYTES:
        return Check("disk space", True, True, found)
    wanted = f"{DISK_MIN_BYTES / 1024**3:.0f} GiB"
    remedy = "free some, for example with `accelsim cache clear`"
    return Check("disk space", False, True, found, f"less than {wanted} is free", remedy)


def check_waves(machine: Machine) -> Check:
    """Waveforms can be written in the small format."""
    try:
        if machine.fst_headers():
            return Check("FST waveforms", True, False, "headers of lz4 and zlib")
    except AccelsimError:
        pass  # without a compiler, which has a check of its own
    remedy = "install the headers (Debian: liblz4-dev zlib1g-dev)"
    problem = "waveforms are written as VCD, which is large"
    return Check("FST waveforms", False, False, "", problem, remedy)


def check_browser(machine: Machine) -> Check:
    """A headless Chromium is there for the test that looks at the HTML report."""
    for path in filter(None, map(machine.program, BROWSERS)):
        return Check("Chromium", True, False, path)
    problem = "the test that looks at the HTML report cannot run"
    return Check("Chromium", False, False, "", problem, "install it (Debian: chromium)")


def check_all(machine: Machine, folder: Path | None = None) -> tuple[Check, ...]:
    """Every check, required ones first. `folder` is where runs and builds are kept."""
    return (
        check_python(machine),
        *(check_program(machine, name) for name in PROGRAMS),
        check_verilator(machine),
        *(check_package(machine, name, extra) for extra, names in EXTRAS.items() for name in names),
        check_libpython(machine),
        check_rtl(machine),
        check_disk(machine, folder or sources.build_root()),
        check_waves(machine),
        check_browser(machine),
    )


def failures(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """Required checks that failed: with any of these, `accelsim doctor` exits with 2."""
    return tuple(check for check in checks if check.required and not check.ok)
