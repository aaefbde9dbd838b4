"""Rules that hold for every test run: seeds, Hypothesis, and what CI does not tolerate.

What comes in: pytest's configuration. What goes out: the seed in the header and in the JUnit XML,
and a failed run where CI (the variable `CI` is `true`) skipped a test or ran too few.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from _pytest.junitxml import xml_key
from hypothesis.configuration import set_hypothesis_home_dir

DEFAULT_SEED = 1
COCOTB_RUNS = Path("build/cosim/runs")
RTL_FOLDERS = {"cosim", "rtl"}
FLOOR = Path(__file__).parent / "structure" / "collected_floor.txt"

# Two-thread BLAS collapses when the other core is busy.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# The NPU's RTL runs short programs here: compiling it fast takes longer than all of them.
os.environ.setdefault("ACCELSIM_RTL_BUILD", "quick")

set_hypothesis_home_dir("build/cache/hypothesis")
hypothesis.settings.register_profile(
    "accelsim", derandomize=True, database=None, deadline=None, print_blob=True
)
hypothesis.settings.load_profile("accelsim")


def run_seed(config: pytest.Config) -> int:
    """Seed of this run: `--accelsim-seed` where the plugin defines it."""
    return int(config.getoption("accelsim_seed", default=None) or DEFAULT_SEED)


@pytest.hookimpl(trylast=True)  # the JUnit plugin has set itself up by then
def pytest_configure(config: pytest.Config) -> None:
    """Put the seed into the JUnit XML and count what runs; let child processes be interrupted.

    A shell starts what it runs in the background with SIGINT ignored, and children inherit that.
    """
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    xml = config.stash.get(xml_key, None)
    if xml is not None:
        xml.add_global_property("accelsim_seed", str(run_seed(config)))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunPolicy(config), "accelsim-run-policy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what builds or runs RTL by its folder."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in RTL_FOLDERS:
            item.add_marker(pytest.mark.rtl)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Add what cocotb wrote during this run to the JUnit XML."""
    policy = config.pluginmanager.get_plugin("accelsim-run-policy")
    target = config.getoption("xmlpath", default=None)
    if policy is not None and target and Path(target).exists():
        merge_cocotb_results(Path(target), COCOTB_RUNS, policy.started)


def merge_cocotb_results(target: Path, runs: Path, started: float) -> None:
    """Append each newer results file below `runs`, planted failures excepted, to `target`."""
    report = ElementTree.parse(target)
    for path in sorted(runs.glob("*/results.xml")):
        if path.stat().st_mtime >= started and not (path.parent / "expected_failure").exists():
            for suite in ElementTree.parse(path).getroot().iter("testsuite"):
                suite.set("name", f"cocotb.{path.parent.name}")
                report.getroot().append(suite)
    report.write(target, encoding="utf-8", xml_declaration=True)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which seed replays this run."""
    return f"accelsim seed: {run_seed(config)} (replay: --accelsim-seed={run_seed(config)})"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of this run, also given to Python's and NumPy's global generators."""
    value = run_seed(request.config)
    random.seed(value)
    np.random.seed(value)
    return value


class RunPolicy:
    """In CI a skip fails the run, and so does a whole run with fewer tests than the floor."""

    def __init__(self, config: pytest.Config) -> None:
        """Read nothing yet: the test paths are known, the tests are not."""
        self.config = config
        self.started = time.time()
        self.skipped: list[str] = []
        self.ran: set[str] = set()
        self.problems: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of one test."""
        self.ran.add(report.nodeid)
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notice a module that skips itself."""
        if report.skipped:
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a skip or a shortfall into a failure."""
        if os.environ.get("CI") != "true":
            return
        if self.skipped:
            self.problems.append(f"skipped in CI: {', '.join(sorted(set(self.skipped)))}")
        floor = int(FLOOR.read_text(encoding="ascii")) if FLOOR.exists() else 0
        if self.whole_run() and len(self.ran) < floor:
            self.problems.append(f"{len(self.ran)} tests ran, the committed floor is {floor}")
        if self.problems and session.exitstatus in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def whole_run(self) -> bool:
        """True where no path and no expression narrows the run."""
        from_config = self.config.args_source == pytest.Config.ArgsSource.TESTPATHS
        marks = self.config.getoption("markexpr") in ("", "not campaign")
        return from_config and marks and not self.config.getoption("keyword")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why a run without a failing test failed."""
        for problem in self.problems:
            terminalreporter.write_line(f"FAILED by tests/conftest.py: {problem}", red=True)
