"""What ends a run from outside is not lost in the code of others, and lets clean-up finish."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

import pytest

from accelsim import cli, zoo
from accelsim.cli import stops
from accelsim.cli.stops import stoppable
from accelsim.errors import TimeLimitError


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(stops, "AGAIN_SECONDS", 0.02)


def wait() -> None:
    """Long enough for every timer here; an exception ends it early."""
    time.sleep(10)


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_is_swallowed_comes_again(number):
    kind = TimeLimitError if number is None else KeyboardInterrupt
    limit = 0.02 if number is None else None
    with pytest.raises(kind), stoppable(limit) as stop:
        with contextlib.suppress(kind):
            if number is not None:
                os.kill(os.getpid(), number)
            wait()
        wait()
    assert isinstance(stop.reason, kind)


def test_a_stop_does_not_interrupt_what_cleans_up_after_it():
    cleaned = False
    with pytest.raises(TimeLimitError), stoppable(0.02):
        try:
            wait()
        finally:
            time.sleep(0.2)
            cleaned = True
    assert cleaned


def test_nothing_comes_after_a_stop_is_settled():
    with stoppable(0.02) as stop:
        try:
            wait()
        except TimeLimitError:
            stop.settle()
        time.sleep(0.2)
    assert isinstance(stop.reason, TimeLimitError)


def test_an_interrupt_while_the_command_line_is_imported_is_code_130(monkeypatch, capsys):
    class Interrupting:
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "accelsim.cli.app", Interrupting())
    with pytest.raises(SystemExit) as stopped:
        cli.main(["zoo"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "accelsim: interrupted\n"


def test_an_interrupt_of_any_command_is_said(monkeypatch, capsys):
    def names() -> list[str]:
        os.kill(os.getpid(), signal.SIGINT)
        wait()
        return []

    monkeypatch.setattr(zoo, "zoo_names", names)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["zoo"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "accelsim: interrupted\n"
