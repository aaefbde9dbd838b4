"""What a run of operators adds to pytest: its session, the seed in the JUnit XML, the table."""

from __future__ import annotations

import pytest

from accelsim.ops.session import Session


class OpsPlugin:
    """Carries the session, records its seed, prints its table, refuses empty comparisons."""

    def __init__(self, session: Session) -> None:
        """Keep the session."""
        self.session = session

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
