"""What `quantize`, `advise` and `diagnose` have in common: work under a limit, then print.

What comes in: a record that the work fills. What goes out: text or a document, and the exit code.
It must not know what is analysed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from accelsim.cli.console import Streams, nobody_reads
from accelsim.cli.execution import model_code
from accelsim.cli.output import write_json_output
from accelsim.cli.stops import stoppable


class Record(Protocol):
    """What an analysis found, also where it ended early."""

    @property
    def error(self) -> str | None:
        """One sentence; empty where nothing ended it."""

    @property
    def exit_code(self) -> int:
        """Of the process."""

    def fail(self, error: BaseException) -> None:
        """Note why it ended."""


def work(
    record: Record, model: str, io: Streams, time_limit: float | None, action: Callable[[], None]
) -> None:
    """Run `action`, which may run the user's code; what it raises is noted in the record."""
    with stoppable(time_limit) as stop:
        try:
            with io.working(), model_code(model):
                action()
        except (Exception, KeyboardInterrupt) as error:
            stop.settle()
            if io.debug:
                io.err.print_exception()
            record.fail(stop.or_else(error))


def finish(
    record: Record,
    io: Streams,
    json: str | None,
    document: Callable[[], dict[str, Any]],
    text: Callable[[], Iterable[str]],
) -> int:
    """Print what was found; returns the exit code."""
    try:
        if json is not None:
            write_json_output(json, document())
        if json != "-":
            for line in text():
                io.out.print(line, markup=False, soft_wrap=True, highlight=False)
            sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads(sys.stdout)
    if record.error:
        prefix = "internal error: " if record.exit_code == 3 else ""
        io.say(f"accelsim: {prefix}{record.error}")
    return record.exit_code
