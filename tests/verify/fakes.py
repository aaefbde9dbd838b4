"""Two simulators in place of simulator and RTL, so that a test can say which of them is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from accelsim.artifacts import Backend, Launch, RunResult
from accelsim.simulate import Simulator
from accelsim.verify.options import VerifyOptions


def relabelled(simulator: Simulator, name: str) -> Backend:
    """A simulator whose results claim to come from another backend."""

    def launch(given: Launch) -> RunResult:
        return replace(simulator.run(given), backend=name)

    return launch


def backends_with(bugs: dict[str, str | None]):
    """A replacement of `open_backends` that plants a bug in each backend named."""

    @contextmanager
    def opened(options: VerifyOptions, waves: Path | None) -> Iterator[dict[str, Backend]]:
        yield {
            name: relabelled(Simulator(options.config, bug=bugs.get(name)), name)
            for name in options.backends
        }

    return opened
