"""Streams of the command line: results on stdout, progress on stderr, colour as asked."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TextIO

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text


class Color(StrEnum):
    """When to colour."""

    auto = "auto"
    always = "always"
    never = "never"


WIDE = 200  # columns where output is not a terminal: tables are not broken


class Output(Console):
    """A console whose reader may go away: that is a BrokenPipeError, and no exit code."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, where rich itself would exit with code 1."""
        raise BrokenPipeError


def nobody_reads(stream: TextIO) -> None:
    """The reader of a stream went away, which is its right: what follows goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def writable_streams() -> None:
    """Let stdout and stderr take any text: also if they are closed, or encode little of Unicode."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@dataclass(slots=True)
class Streams:
    """Where results and progress go. `verbosity`: -1 quiet, 0 normal, 1 and more verbose."""

    out: Console
    err: Console
    verbosity: int = 0
    debug: bool = False
    started: float = field(default_factory=time.monotonic)
    live: Status | None = None

    def progress(self, message: str) -> None:
        """A step of long work, on stderr: one living line on a terminal, else a line each."""
        if self.live is not None:
            self.live.update(Text(message, style="dim"))
        elif self.verbosity >= 0:
            seconds = f"{time.monotonic() - self.started:6.1f} s  " if self.verbosity else ""
            self.say(seconds + message, style="dim")

    def say(self, message: str, style: str = "") -> None:
        """A line on stderr, never wrapped: it may be a path or a command."""
        try:
            self.err.print(Text(message, style=style), soft_wrap=True)
        except BrokenPipeError:
            nobody_reads(sys.stderr)

    @contextmanager
    def working(self) -> Iterator[None]:
        """While this lasts, progress is one living line if stderr is a terminal."""
        if self.verbosity != 0 or not self.err.file.isatty():
            yield
            return
        with self.err.status(Text("starting", style="dim"), spinner="line") as live:
            self.live = live
            try:
                yield
            finally:
                self.live = None


def streams(color: Color, verbosity: int, debug: bool) -> Streams:
    """Consoles for a colour choice; rich itself honours NO_COLOR and terminals."""
    force = {Color.auto: None, Color.always: True, Color.never: False}[color]

    def console(file: object, terminal: bool) -> Console:
        return Output(
            file=file,  # type: ignore[arg-type]
            force_terminal=force,
            no_color=True if color is Color.never else None,
            width=shutil.get_terminal_size().columns if terminal else WIDE,
            soft_wrap=not terminal,
            emoji=False,
            highlight=False,
        )

    return Streams(
        console(sys.stdout, sys.stdout.isatty()),
        console(sys.stderr, sys.stderr.isatty()),
        verbosity,
        debug,
    )


def streams_of(context: typer.Context) -> Streams:
    """The streams that the global options chose."""
    assert isinstance(context.obj, Streams)
    return context.obj
