"""One verification in progress: its clock, its limits, and its report kept current on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from accelsim.artifacts import Backend, Launch, Program, RunResult
from accelsim.errors import RtlError, TimeLimitError
from accelsim.report import document
from accelsim.simulate import Simulator
from accelsim.verify import folder
from accelsim.verify.options import Progress, VerifyOptions
from accelsim.verify.record import RunRecord

# A run that needs this many times the cycles that the timing model predicts has hung.
SLACK = 16
SLACK_CYCLES = 200_000
REPORT_SHARE = 0.05  # of the time goes into writing a report that is written again, at most


@dataclass(slots=True)
class Verification:
    """One run: its options, what it found, and the clock that bounds it."""

    options: VerifyOptions
    progress: Progress
    record: RunRecord
    started: float = field(default_factory=time.monotonic)
    limits: dict[bytes, int] = field(default_factory=dict)
    _next: float = 0.0

    def checkpoint(self) -> None:
        """Write report.json: a run that is killed leaves what it had finished."""
        begin = time.monotonic()
        folder.write_json(self.options.out / "report.json", document(self.record))
        end = time.monotonic()
        self._next = end + (end - begin) / REPORT_SHARE

    def checkpoint_if_due(self) -> None:
        """Write report.json, unless that was done just now; a long report waits a little longer."""
        if time.monotonic() >= self._next:
            self.checkpoint()

    def seconds_left(self) -> float | None:
        """Seconds until the time limit, None without one."""
        limit = self.options.time_limit_seconds
        return None if limit is None else limit - (time.monotonic() - self.started)

    def check_time(self) -> None:
        """Raise TimeLimitError once the limit has passed."""
        left = self.seconds_left()
        if left is not None and left < 0:
            raise TimeLimitError(
                f"the time limit of {self.options.time_limit_seconds:g} s has passed; what was "
                f"finished is in {self.options.out}"
            )

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of a step to the record."""
        begin = time.monotonic()
        try:
            yield
        finally:
            seconds = self.record.seconds
            seconds[name] = seconds.get(name, 0.0) + time.monotonic() - begin

    def bounded(self, name: str, backend: Backend) -> Backend:
        """A backend whose seconds are counted and whose cycles are limited.

        Raises RtlError where the RTL hangs beyond its own watchdog.
        """

        def launch(given: Launch) -> RunResult:
            limit = min(given.cycle_limit, self.cycle_limit(given))
            with self.timed(name):
                try:
                    return backend(replace(given, cycle_limit=limit))
                except TimeLimitError as error:
                    self.check_time()
                    hung = RtlError(str(error))
                    hung.instruction, hung.digests = error.instruction, error.digests
                    raise hung from error

        return launch

    def cycle_limit(self, launch: Launch) -> int:
        """Cycles after which a launch has hung, from the timing model of its program."""
        program: Program = launch.program
        key = program.words.tobytes()
        if key not in self.limits:
            model = Simulator(program.config, values=False, checks=False)
            expected = model.run(replace(launch, cycle_limit=1 << 28)).cycles
            self.limits[key] = SLACK * expected + SLACK_CYCLES
        return self.limits[key]
