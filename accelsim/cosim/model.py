"""The executable of the whole NPU with its test bench, per configuration.

What comes in: a configuration. What goes out: a built executable. This module must not know
how it is run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from accelsim import sources
from accelsim.cosim.build import OPTIMIZE, BuildRequest, build, cache_root, is_built
from accelsim.errors import InputError
from accelsim.files import whole_file
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.generate.systemverilog import package

TOP = "npu_tb"
BENCH = ("axi_protocol.sv", "axi_memory.sv", "npu_observe.sv", "npu_tb.sv")
BENCH_CPP = ("axi_memory.cpp", "npu_observe.cpp", "npu_model.cpp", "npu_loop.cpp", "npu_main.cpp")
VISIBLE = "npu_tb.vlt"
# Where short programs run, a model that compiles soon is worth more than one that runs fast.
BUILD_VARIABLE = "ACCELSIM_RTL_BUILD"


def bench_root() -> Path:
    """Folder of the test bench's sources."""
    return sources.rtl_root() / "tb"


def design_files(config: Config) -> tuple[Path, ...]:
    """The NPU's sources, package first: the committed one, or a new one for a user's own."""
    if CONFIGS.get(config.name) == config:
        return sources.rtl_files(config.name)
    text = package(config)
    folder = cache_root() / "gen" / hashlib.sha256(text.encode()).hexdigest()[:16]
    file = folder / sources.PACKAGE_FILE
    if not file.is_file():
        with whole_file(file) as partial:
            partial.write_text(text, encoding="utf-8")
    return (file, *sources.listed_files(sources.rtl_root()))


def model_request(
    config: Config,
    *,
    waves: bool = False,
    design: Sequence[Path] | None = None,
    root: Path | None = None,
    optimize: str | None = None,
) -> BuildRequest:
    """What to build for a configuration. `design` replaces the NPU's own sources, package first;
    a file of the bench that `design` also names is taken from there, and C++ is linked. `optimize`
    is a key of `build.OPTIMIZE`; without one the executable is `fast`, or where none such is in the
    cache, what the variable `ACCELSIM_RTL_BUILD` names. Raises InputError where that is no key.
    """
    bench = root or bench_root()
    given = tuple(design) if design is not None else design_files(config)
    files = tuple(path for path in given if path.suffix != ".cpp")
    named = {path.name for path in files}
    files += tuple(bench / name for name in BENCH if name not in named)
    request = BuildRequest(
        top=TOP,
        sources=(bench / VISIBLE, *files),
        cpp_sources=(
            *(bench / name for name in BENCH_CPP),
            *(path for path in given if path.suffix == ".cpp"),
        ),
        include_dirs=(bench,),
        flags=("--x-assign", "fast", "--timescale", "1ps/1ps", "-Wno-lint", "-Wno-style"),
        optimize=optimize or "fast",
        waves=waves,
    )
    named_one = os.environ.get(BUILD_VARIABLE, "fast")
    if named_one not in OPTIMIZE:
        raise InputError(f"{BUILD_VARIABLE} is {named_one!r}: use {' or '.join(OPTIMIZE)}.")
    if optimize is not None or named_one == "fast" or is_built(request):
        return request
    return replace(request, optimize=named_one)


def build_model(
    config: Config,
    *,
    waves: bool = False,
    design: Sequence[Path] | None = None,
    root: Path | None = None,
    optimize: str | None = None,
) -> Path:
    """Path of the executable; nothing is built where sources, flags and tools are as before."""
    request = model_request(config, waves=waves, design=design, root=root, optimize=optimize)
    return build(request)
