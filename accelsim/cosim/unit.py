"""Unit benches: any RTL module under cocotb, built outside cocotb's runner and cached.

What comes in: a top module, its sources and parameters, and a Python module with cocotb tests.
What goes out: a `UnitResult`, or an AssertionError that names the failing test and the log.
This module must not know the NPU. Drivers and monitors of streams are in `accelsim.cosim.streams`.

One file holds both sides. pytest collects the functions named `test_…`, cocotb those that are
decorated with `@cocotb.test()`; keep their names different (pytest: `test_`, cocotb: `check_`):

    import cocotb
    from accelsim.cosim.streams import Pattern, StreamDriver, StreamMonitor, reset, start_clock
    from accelsim.cosim.unit import rtl, run_unit

    def test_fifo_keeps_order() -> None:
        run_unit("npu_fifo", rtl("gen/edge8/npu_pkg.sv", "npu_fifo.sv"), __name__, seed=1,
                 parameters={"Depth": 4})

    @cocotb.test()
    @cocotb.parametrize(pattern=list(Pattern))
    async def check_order(dut, pattern):
        await reset(dut)                                    # clk_i, rst_ni
        source = StreamDriver(dut, "in_valid_i", "in_ready_o", ["in_data_i"], pattern)
        sink = StreamMonitor(dut, "out_valid_o", "out_ready_i", ["out_data_o"], pattern)
        await source.send_all(words)                        # ints, or dicts where several signals
        assert await sink.receive(len(words)) == words
        source.finish()                                     # asserts that stalls were seen
        sink.finish()

Only the ports of the top module are visible to cocotb (plus whatever sources mark public), which
keeps the model fast to build and to run. Packed structs and arrays appear as flat vectors. Where
ports are awkward, wrap the module in a small SystemVerilog file below tests/ and make that the top.
Clock and reset are `clk_i` and `rst_ni`. State that reset does not set starts random, by the seed.

DMA modules can be connected to the AXI memory model in such a wrapper: sources `rtl(*AXI_MEMORY)`,
option `cpp_sources=rtl(*AXI_MEMORY_CPP)`, and in the cocotb test `SimulatedMemory` from
`accelsim.cosim.memory`.

To see an assertion fire: `run_unit(..., expect_failure="text of the assertion's message")`.
Waves: `run_unit(..., waves=True)` leaves `dump.fst` or `dump.vcd` in the run folder.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from accelsim import sources
from accelsim.cosim.build import BuildRequest, build, cache_root
from accelsim.errors import ToolError

LOG_TAIL_LINES = 40
# Beside a results file whose failures are wanted: JUnit reports leave that file out.
EXPECTED_FAILURE = "expected_failure"


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What a run of cocotb tests left: counts, the log's text and the results file (JUnit XML)."""

    tests: int
    failed: int
    log: str
    results_xml: Path
    folder: Path
    seed: int


def rtl(*names: str) -> tuple[Path, ...]:
    """Paths of RTL files, given relative to rtl/."""
    return tuple(sources.rtl_root() / name for name in names)


AXI_MEMORY = ("tb/axi_protocol.sv", "tb/axi_memory.sv")
AXI_MEMORY_CPP = ("tb/axi_memory.cpp",)


def cocotb_main() -> Path:
    """The main program of unit benches, which wraps the one that cocotb ships for Verilator."""
    return rtl("tb/unit_main.cpp")[0]


def build_unit(
    top: str,
    sources: Sequence[Path],
    *,
    parameters: Mapping[str, int | str] | None = None,
    defines: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    cpp_sources: Sequence[Path] = (),
    flags: Sequence[str] = (),
    waves: bool = False,
) -> Path:
    """The executable of a unit bench, from the cache where nothing changed."""
    request = BuildRequest(
        top=top,
        sources=tuple(sources),
        cpp_sources=(cocotb_main(), *cpp_sources),
        parameters=parameters or {},
        defines=tuple(defines),
        include_dirs=tuple(include_dirs),
        flags=("--public-depth", "1", "--x-assign", "unique", *flags),
        waves=waves,
    )
    return build(request)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """cocotb's runner hands `sys.path` to the simulator: `folder` must be on it."""
    added = str(folder) not in sys.path
    if added:
        sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if added:
            sys.path.remove(str(folder))


def _tail(log: str) -> str:
    return "\n".join(log.splitlines()[-LOG_TAIL_LINES:])


def run_unit(
    top: str,
    sources: Sequence[Path],
    test_module: str,
    *,
    seed: int = 1,
    parameters: Mapping[str, int | str] | None = None,
    defines: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    cpp_sources: Sequence[Path] = (),
    flags: Sequence[str] = (),
    only: str | None = None,
    environment: Mapping[str, str] | None = None,
    waves: bool = False,
    expect_failure: str | None = None,
    name: str | None = None,
) -> UnitResult:
    """Builds `top` and runs the cocotb tests of `test_module` against it.

    `only` is a regular expression on test names; `environment` reaches the tests (os.environ);
    `name` names the run folder below build/cosim/runs (default: top and parameters).
    With `expect_failure` the run must fail and its log must match that regular expression.
    Raises AssertionError with the end of the log otherwise, ToolError where the build fails.
    """
    executable = build_unit(
        top,
        sources,
        parameters=parameters,
        defines=defines,
        include_dirs=include_dirs,
        cpp_sources=cpp_sources,
        flags=flags,
        waves=waves,
    )
    suffix = "-".join(f"{key}{value}" for key, value in (parameters or {}).items())
    label = name or "-".join(part for part in (top, suffix, test_module.split(".")[-1]) if part)
    if only is not None and name is None:
        label += "-" + re.sub(r"\W+", "_", only)
    folder = cache_root() / "runs" / f"{label}-seed{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    planted = folder / EXPECTED_FAILURE
    planted.unlink(missing_ok=True)
    if expect_failure is not None:
        planted.touch()
    result = _simulate(executable, top, test_module, folder, seed, only, environment or {}, waves)
    if expect_failure is not None:
        assert result.failed or not result.tests, f"{top}: expected a failure, every test passed"
        assert re.search(expect_failure, result.log), (
            f"{top} failed without '{expect_failure}':\n{_tail(result.log)}"
        )
        return result
    assert result.tests > 0, (
        f"{top}: no test of {test_module} finished (seed {seed}), log in "
        f"{folder / 'run.log'}:\n{_tail(result.log)}"
    )
    assert not result.failed, (
        f"{top}: {result.failed} of {result.tests} tests failed (seed {seed}), log in "
        f"{folder / 'run.log'}:\n{_tail(result.log)}"
    )
    return result


def _simulate(
    executable: Path,
    top: str,
    test_module: str,
    folder: Path,
    seed: int,
    only: str | None,
    environment: Mapping[str, str],
    waves: bool,
) -> UnitResult:
    """Runs the tests through cocotb's runner; a dead simulation gives 0 tests and its log."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    results_xml = folder / "results.xml"
    log_file = folder / "run.log"
    logging.getLogger(__name__).info("%s: seed %d, log %s", top, seed, log_file)
    aborted = False
    with _importable(sources.PACKAGE.parent):
        try:
            get_runner("verilator").test(
                test_module=test_module,
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                build_dir=executable.parent,
                test_dir=folder,
                seed=seed,
                test_filter=only,
                plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{seed}"],
                extra_env={"PYTHONDONTWRITEBYTECODE": "1", **environment},
                results_xml=str(results_xml),
                log_file=log_file,
                waves=waves,
            )
        except (SystemExit, RuntimeError, ValueError) as error:
            if not log_file.is_file():
                raise ToolError(f"cocotb could not start {executable}: {error}.") from None
            aborted = True
    log = log_file.read_text(encoding="utf-8", errors="replace")
    try:
        tests, failed = get_results(results_xml)
    except RuntimeError:
        tests, failed = 0, 0
    if aborted and not failed:
        failed = 1  # the simulation died, by an assertion for example, after its last result
    return UnitResult(tests, failed, log, results_xml, folder, seed)
