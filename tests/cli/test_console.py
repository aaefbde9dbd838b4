"""Streams whose reader goes away."""

from __future__ import annotations

import errno
import io

import pytest

from accelsim.cli import app, console
from accelsim.cli.console import Color, streams


class Gone(io.StringIO):
    """A pipe that nobody reads."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_progress_that_nobody_reads_does_not_end_a_run(monkeypatch):
    gone = []
    monkeypatch.setattr(console, "nobody_reads", gone.append)
    monkeypatch.setattr("sys.stderr", Gone())
    streams(Color.auto, 0, debug=False).progress("layer 1")
    assert len(gone) == 1


def test_a_list_that_nobody_reads_to_its_end_is_no_mismatch(monkeypatch):
    gone = []
    monkeypatch.setattr(app, "nobody_reads", gone.append)
    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(SystemExit) as stopped:
        app.run(["zoo"])
    assert gone and not stopped.value.code


def test_results_that_nobody_reads_are_no_exit_code(monkeypatch):
    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(BrokenPipeError):
        streams(Color.auto, 0, debug=False).out.print("a table")


def test_a_stream_that_encodes_little_gets_question_marks(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    console.writable_streams()
    print("§ 1", flush=True)  # noqa: T201
    assert raw.getvalue() == b"? 1\n"


def test_streams_that_the_shell_closed_are_no_error(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    with pytest.raises(SystemExit) as stopped:
        app.run(["zoo", "--nonsense"])
    assert stopped.value.code == 2


def test_a_full_disk_is_code_2(monkeypatch, capsys):
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(SystemExit) as stopped:
        app.run(["zoo"])
    assert stopped.value.code == 2 and "No space left on device" in capsys.readouterr().err


def test_colour_by_force_draws_no_living_line_into_a_file(monkeypatch):
    err = io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    chosen = streams(Color.always, 0, debug=False)
    with chosen.working():
        chosen.progress("layer 1")
    assert err.getvalue() == "\x1b[2mlayer 1\x1b[0m\n"
