"""Verilated executables, cached by a hash over everything that goes into them.

What comes in: a `BuildRequest`. What goes out: the path of an executable in the cache folder.
This module must not know the NPU, programs or cocotb tests. Two processes that want the same
binary wait for one another; a killed build leaves only a scratch folder, which is swept later.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from accelsim import sources
from accelsim.cosim.tools import Toolchain, can_write_fst, find_toolchain
from accelsim.errors import ToolError
from accelsim.files import whole_file

# `quick` compiles fast and serves unit benches; `fast` runs fast and serves whole programs.
OPTIMIZE = {
    "quick": {"OPT_FAST": "-O1", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O1"},
    "fast": {
        "OPT_FAST": "-O3 -march=native",
        "OPT_SLOW": "-O0",
        "OPT_GLOBAL": "-O3 -march=native",
        "VM_PARALLEL_BUILDS": "1",  # files apart, so that OPT_SLOW applies to those that run once
    },
}
SCRATCH_AGE_SECONDS = 3600
# Folders of the cache: binaries, run-time objects, builds under way and failed, generated packages
# of users' configurations, sources with planted bugs, run folders of unit benches and sessions.
PARTS = ("bin", "runtime", "scratch", "failed", "gen", "mutants", "runs", "sessions")


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One executable. `sources` are SystemVerilog and .vlt files in compile order."""

    top: str
    sources: tuple[Path, ...]
    cpp_sources: tuple[Path, ...]
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    defines: tuple[str, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()  # further Verilator flags
    optimize: str = "quick"
    waves: bool = False
    jobs: int = 2


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A finished binary in the cache."""

    name: str
    size_bytes: int
    built: str  # UTC time


def cache_root() -> Path:
    """Default folder of everything that builds and runs leave behind."""
    return sources.build_root() / "cosim"


def wave_format() -> str:
    """`fst`, or `vcd` where the headers of lz4 or zlib are missing."""
    return "fst" if can_write_fst() else "vcd"


def _include_files(request: BuildRequest) -> list[Path]:
    found: list[Path] = []
    for folder in request.include_dirs:
        found += [p for p in folder.iterdir() if p.suffix in {".svh", ".vh", ".h", ".inc"}]
    return sorted(found)


def request_hash(request: BuildRequest, tools: Toolchain) -> str:
    """16 hex digits over sources, parameters, flags and tool versions (not over paths)."""
    from cocotb import __version__ as cocotb_version

    digest = hashlib.sha256()
    parts = [request.top, request.optimize, str(OPTIMIZE[request.optimize]), str(request.waves)]
    parts += [wave_format() if request.waves else "", tools.identity(), cocotb_version, sys.version]
    parts += [f"{name}={value}" for name, value in sorted(request.parameters.items())]
    parts += [*request.defines, "|", *request.flags]
    for part in parts:
        digest.update(part.encode() + b"\0")
    _add_contents(digest, (*request.sources, *request.cpp_sources, *_include_files(request)))
    return digest.hexdigest()[:16]


def content_hash(files: Iterable[Path]) -> str:
    """16 hex digits over names and contents of files. Raises ToolError for one that is missing."""
    digest = hashlib.sha256()
    _add_contents(digest, files)
    return digest.hexdigest()[:16]


def _add_contents(digest: hashlib._Hash, files: Iterable[Path]) -> None:
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ToolError(f"source {path} cannot be read: {error.strerror}.") from None
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(content).digest())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on `path`, which the kernel drops when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str], log: Path, tools: Toolchain, what: str, cache: Path) -> None:
    with log.open("a", encoding="utf-8") as stream:
        stream.write(" ".join(command) + "\n")
        stream.flush()
        done = subprocess.run(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=tools.environment(dict(os.environ)),
            check=False,
        )
    if done.returncode != 0:
        text = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [
            line for line in text if "%Error" in line or " error: " in line or "Error 1" in line
        ]
        kept = cache / "failed" / f"{log.parent.name}.log"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, kept)
        shown = "\n".join(errors[:12] or text[-12:])
        raise ToolError(f"{what} failed, full log in {kept}:\n{shown}")


def _verilate(
    request: BuildRequest, tools: Toolchain, objects: Path, log: Path, cache: Path
) -> None:
    from cocotb_tools import config as cocotb_config

    libraries = cocotb_config.libs_dir
    command = [*tools.verilator_command(), "--cc", "--exe", "--vpi", "--no-timing", "--assert"]
    command += ["--prefix", "Vtop", "-Mdir", str(objects), "-o", request.top]
    command += ["--top-module", request.top, "-Wno-fatal", "--x-initial", "unique"]
    link = f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator -lgpi -ldl -rdynamic"
    command += ["-LDFLAGS", link]
    mains = Path(cocotb_config.share_dir) / "lib" / "verilator"  # cocotb's main program
    command += ["-CFLAGS", f"-I{mains}"]
    if request.waves:
        command += ["--trace-fst" if wave_format() == "fst" else "--trace", "--trace-structs"]
    command += [f"-G{name}={value}" for name, value in request.parameters.items()]
    command += [f"-D{name}" for name in request.defines]
    command += [f"-I{folder}" for folder in request.include_dirs]
    command += [*request.flags, *(str(p) for p in request.cpp_sources)]
    command += [str(p) for p in request.sources]
    _run(command, log, tools, f"verilating {request.top}", cache)


def _make_variables(request: BuildRequest, tools: Toolchain) -> list[str]:
    """Settings that the makefile of a relocated Verilator lacks or gets wrong."""
    settings = {
        "CXX": str(tools.gxx),
        "LINK": str(tools.gxx),
        "AR": str(tools.ar),
        "PERL": str(tools.perl),
        "PYTHON3": sys.executable,
        "CFG_CXXFLAGS_STD": "-std=gnu++17",
        "CFG_CXXFLAGS_PCH_I": "-include",
        "CFG_LDLIBS_THREADS": "-pthread",
        **OPTIMIZE[request.optimize],
    }
    if tools.verilator_root is not None:
        settings["VERILATOR_ROOT"] = str(tools.verilator_root)
    return [f"{name}={value}" for name, value in settings.items()]


def _runtime_objects(objects: Path) -> list[str]:
    """Names of the object files of Verilator's run-time library that a model links."""
    text = (objects / "Vtop_classes.mk").read_text(encoding="utf-8")
    found = re.search(r"^VM_GLOBAL_FAST \+=((?:.*\\\n)*.*)$", text, re.MULTILINE)
    names = found[1].replace("\\", " ").split() if found else []
    return [f"{name}.o" for name in names]


def _runtime_key(variables: list[str], objects: Path, tools: Toolchain) -> str:
    """Hash over all that changes the run-time library's objects."""
    makefile = (objects / "Vtop_classes.mk").read_text(encoding="utf-8")
    switches = sorted(
        re.findall(r"^VM_(?:TRACE|COVERAGE|SC|TIMING|THREADS)\w* = \S*", makefile, re.M)
    )
    text = "\0".join([tools.identity(), *variables, *switches])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _compile(
    request: BuildRequest, tools: Toolchain, objects: Path, log: Path, cache: Path
) -> None:
    variables = _make_variables(request, tools)
    runtime = cache / "runtime" / _runtime_key(variables, objects, tools)
    names = _runtime_objects(objects)
    for name in names:  # newer than the makefile, so make takes them as they are
        with suppress(FileNotFoundError):
            shutil.copyfile(runtime / name, objects / name)
    command = [str(tools.make), "-j", str(request.jobs), "-C", str(objects), "-f", "Vtop.mk"]
    _run([*command, *variables], log, tools, f"compiling {request.top}", cache)
    for name in names:
        if not (runtime / name).is_file() and (objects / name).is_file():
            with suppress(FileNotFoundError), whole_file(runtime / name) as partial:
                shutil.copyfile(objects / name, partial)  # the cache may be cleared meanwhile


def _sweep(folder: Path) -> None:
    """Removes scratch folders of builds that died."""
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):  # a build beside this one removed it
            if time.time() - path.stat().st_mtime > SCRATCH_AGE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def is_built(request: BuildRequest, cache: Path | None = None) -> bool:
    """Whether the cache holds the executable; ToolError where a tool or source is missing."""
    name = f"{request.top}-{request_hash(request, find_toolchain())}"
    return ((cache or cache_root()) / "bin" / name / request.top).is_file()


def build(request: BuildRequest, cache: Path | None = None) -> Path:
    """The executable for `request`, built now unless the folder `cache` holds it.

    Raises ToolError where a tool or source is missing or the build fails (with the log's path).
    """
    cache = cache or cache_root()
    if any(c.isspace() for c in str(cache)):
        raise ToolError(f"GNU make cannot build in {cache}: move to a path without spaces.")
    tools = find_toolchain()
    name = f"{request.top}-{request_hash(request, tools)}"
    target = cache / "bin" / name
    executable = target / request.top
    if executable.is_file():
        return executable
    with locked(cache / "locks" / f"{name}.lock"):
        if executable.is_file():
            return executable
        scratch = cache / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        _sweep(scratch)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=scratch) as folder:
            work = Path(folder)
            log = work / "build.log"
            _verilate(request, tools, work / "obj", log, cache)
            _compile(request, tools, work / "obj", log, cache)
            if f"{request.top}-{request_hash(request, tools)}" == name:
                _install(request, work, target)
                return executable
    return build(request, cache)  # sources changed meanwhile: what was built has no name


def _install(request: BuildRequest, work: Path, target: Path) -> None:
    """Moves what a finished build leaves into the cache in one step."""
    ready = work / "ready"
    ready.mkdir()
    shutil.move(work / "obj" / request.top, ready / request.top)
    shutil.copyfile(work / "build.log", ready / "build.log")
    about = {
        "top": request.top,
        "sources": [p.name for p in request.sources],
        "parameters": dict(request.parameters),
        "optimize": request.optimize,
        "waves": wave_format() if request.waves else None,
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": sysconfig.get_python_version(),
    }
    (ready / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    ready.rename(target)


def cache_info(cache: Path | None = None) -> tuple[CacheEntry, ...]:
    """Finished binaries, oldest first."""
    entries = []
    for about in ((cache or cache_root()) / "bin").glob("*/about.json"):
        with suppress(FileNotFoundError):  # deleted meanwhile
            built = json.loads(about.read_text(encoding="utf-8"))["built"]
            entries.append(CacheEntry(about.parent.name, _size(about.parent), built))
    return tuple(sorted(entries, key=lambda entry: (entry.built, entry.name)))


def cache_sizes(cache: Path | None = None) -> dict[str, int]:
    """Bytes in each part of the cache but the finished binaries; empty parts are left out."""
    folder = cache or cache_root()
    sizes = {part: _size(folder / part) for part in PARTS if part != "bin"}
    return {part: size for part, size in sizes.items() if size}


def cache_clear(cache: Path | None = None) -> int:
    """Deletes all parts of the cache; returns the bytes that became free.

    What a running process builds or simulates stays.
    """
    folder = cache or cache_root()
    before = sum(_size(folder / part) for part in PARTS)
    for part in PARTS:
        for path in (folder / part).glob("*"):
            if part == "scratch" and _is_building(folder, path.name):
                continue
            if part == "sessions" and _is_running(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return before - sum(_size(folder / part) for part in PARTS)


def _size(folder: Path) -> int:
    """Bytes of all files below a folder, those that vanish meanwhile apart."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size if path.is_file() else 0
    return total


def _is_building(cache: Path, scratch: str) -> bool:
    """Whether a process holds the lock of the binary that is built in this scratch folder."""
    lock = cache / "locks" / f"{'-'.join(scratch.split('-')[:2])}.lock"
    if not lock.is_file():
        return False
    with lock.open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _is_running(session: str) -> bool:
    """Whether the process of a session folder, CONFIG-PID-NUMBER, is alive."""
    process = session.split("-")[-2:][0]
    return process.isdigit() and Path("/proc", process).exists()
