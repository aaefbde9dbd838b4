"""A simulator in place of the RTL, so that a test can say which backend is wrong."""

from __future__ import annotations

from dataclasses import replace

from accelsim.artifacts import Backend, Launch, RunResult
from accelsim.simulate import Simulator


def relabelled(simulator: Simulator, name: str) -> Backend:
    """A simulator whose results claim to come from another backend."""

    def launch(given: Launch) -> RunResult:
        return replace(simulator.run(given), backend=name)

    return launch
