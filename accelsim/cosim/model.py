"""The executable of the whole NPU with its test bench, per configuration.

What comes in: a configuration. What goes out: a built executable. This module must not know
how it is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from accelsim import sources
from accelsim.cosim.build import BuildRequest, build, cache_root
from accelsim.files import whole_file
from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.generate.systemverilog import package

TOP = "npu_tb"
BENCH = ("axi_protocol.sv", "axi_memory.sv", "npu_observe.sv", "npu_tb.sv")
BENCH_CPP = ("axi_memory.cpp", "npu_observe.cpp", "npu_model.cpp", "npu_loop.cpp", "npu_main.cpp")
VISIBLE = "npu_tb.vlt"


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
    optimize: str = "fast",
) -> BuildRequest:
    """What to build for a configuration. `design` replaces the NPU's own sources, package first;
    a file of the bench that `design` also names is taken from there, and C++ is linked. `optimize`
    is a key of `build.OPTIMIZE`.
    """
    bench = root or bench_root()
    given = tuple(design) if design is not None else design_files(config)
    files = tuple(path for path in given if path.suffix != ".cpp")
    named = {path.name for path in files}
    files += tuple(bench / name for name in BENCH if name not in named)
    return BuildRequest(
        top=TOP,
        sources=(bench / VISIBLE, *files),
        cpp_sources=(
            *(bench / name for name in BENCH_CPP),
            *(path for path in given if path.suffix == ".cpp"),
        ),
        include_dirs=(bench,),
        flags=("--x-assign", "fast", "--timescale", "1ps/1ps", "-Wno-lint", "-Wno-style"),
        optimize=optimize,
        waves=waves,
    )


def build_model(
    config: Config,
    *,
    waves: bool = False,
    design: Sequence[Path] | None = None,
    root: Path | None = None,
    optimize: str = "fast",
) -> Path:
    """Path of the executable; nothing is built where sources, flags and tools are as before."""
    request = model_request(config, waves=waves, design=design, root=root, optimize=optimize)
    return build(request)
