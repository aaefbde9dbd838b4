"""What ends a run from outside: Ctrl-C, SIGTERM and the time limit, each as one exception.

An exception that travels through a foreign function interface may come out as another one, so the
first reason is kept beside it. Code of others may also swallow it and go on, so it is raised again
until `settle`.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from accelsim.errors import TimeLimitError

AGAIN_SECONDS = 0.5


@dataclass(slots=True)
class Stop:
    """Why a run was ended from outside, or None."""

    reason: BaseException | None = None

    def or_else(self, error: BaseException) -> BaseException:
        """The reason if there is one, else the error that was caught."""
        return self.reason or error

    def settle(self) -> None:
        """The end has come: neither the time limit nor a repetition interrupts what follows."""
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, 0.0)


@contextmanager
def stoppable(limit_seconds: float | None) -> Iterator[Stop]:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM, and TimeLimitError once the limit has passed.

    Does nothing outside the main thread, where no signal arrives.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        stop.reason = stop.reason or KeyboardInterrupt()
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        raise stop.reason

    def late(number: int, frame: FrameType | None) -> None:
        if stop.reason is not None and sys.exception() is not None:
            return  # it may be on its way: clean-up is not interrupted
        stop.reason = stop.reason or TimeLimitError(
            f"the time limit of {limit_seconds:g} s has passed; what was finished is in the report"
        )
        raise stop.reason

    handlers = {signal.SIGINT: interrupted, signal.SIGTERM: interrupted, signal.SIGALRM: late}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_seconds or 0.0, AGAIN_SECONDS)
        yield stop
    finally:
        stop.settle()
        for number, handler in before.items():
            signal.signal(number, handler)
