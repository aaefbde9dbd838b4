"""What a run of operators adds to pytest: its session, the seed in the JUnit XML, the table.

What comes in: a session. What goes out: lines on the terminal, pytest's exit status, and an end of
the run on SIGINT and SIGTERM that keeps what was compared.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from accelsim.ops.session import Item, Session


class OpsPlugin:
    """Carries the session, records its seed, prints its table, refuses empty comparisons.

    With `progress`, a line for each operator on each configuration stands for pytest's dots.
    """

    def __init__(self, session: Session, progress: bool = False) -> None:
        """Keep the session."""
        self.session = session
        self.progress = progress
        self._total: Counter[tuple[str, str]] = Counter()
        self._done: Counter[tuple[str, str]] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._begun = time.monotonic()

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of a signal that ends the run."""
        self.session.interrupted = True
        raise KeyboardInterrupt

    def pytest_sessionstart(self) -> None:
        """End on SIGTERM as on SIGINT, which a shell's background process ignores."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.interrupt)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count what will run."""
        for test in session.items:
            self._total[_group(test)] += 1

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        """After the last case of an operator on a configuration, say how it went."""
        outcome = yield
        report = outcome.get_result()  # type: ignore[attr-defined]
        if report.when != "call":
            return
        group = _group(item)
        self._done[group] += 1
        self._failed[group] += report.failed
        if self.progress and self._done[group] == self._total[group]:
            done = sum(self._done[one] == self._total[one] for one in self._total)
            failed = self._failed[group]
            seconds = time.monotonic() - self._begun
            reporter: Any = item.config.pluginmanager.get_plugin("terminalreporter")
            reporter.write_line(
                f"{done}/{len(self._total)} {seconds:.0f} s {group[0]} {group[1]}: "
                f"{self._done[group] - failed} equal, {failed} failed",
                red=failed > 0,
            )

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dot a case where a line a group is printed."""
        if not self.progress or report.failed:
            return None
        return (report.outcome if report.when == "call" else "", "", "")

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Put the seed into the JUnit XML."""
        from _pytest.junitxml import xml_key

        xml = config.stash.get(xml_key, None)
        if xml is not None:
            xml.add_global_property("accelsim_seed", str(self.session.selection.seed))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that compared nothing somewhere."""
        self.session.close()
        collected = session.testscollected and not session.config.option.collectonly
        if collected and self.session.empty() and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was compared."""
        if terminalreporter.config.option.collectonly:
            return
        terminalreporter.section("operators")
        for line in self.session.table():
            terminalreporter.write_line(line)
        for place in self.session.empty():
            terminalreporter.write_line(f"FAILED: nothing was compared for {place}", red=True)


def _group(test: pytest.Item) -> tuple[str, str]:
    """Operator and configuration of a test."""
    item: Item = test.callspec.params["item"]  # type: ignore[attr-defined]
    return item.operator, item.config
