"""Streams of the command line: results on stdout, progress on stderr, colour as asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console


class Color(StrEnum):
    """When to colour."""

    auto = "auto"
    always = "always"
    never = "never"


WIDE = 200  # columns where output is not a terminal: tables are not broken


@dataclass(slots=True)
class Streams:
    """Where results and progress go. `verbosity`: -1 quiet, 0 normal, 1 and more verbose."""

    out: Console
    err: Console
    verbosity: int = 0
    debug: bool = False

    def progress(self, message: str) -> None:
        """A step of long work, on stderr."""
        if self.verbosity >= 0:
            self.err.print(message, style="dim", highlight=False)

    def detail(self, message: str) -> None:
        """Only with -v."""
        if self.verbosity > 0:
            self.err.print(message, style="dim", highlight=False)


def streams(color: Color, verbosity: int, debug: bool) -> Streams:
    """Consoles for a colour choice; rich itself honours NO_COLOR and terminals."""
    force = {Color.auto: None, Color.always: True, Color.never: False}[color]

    def console(file: object, terminal: bool) -> Console:
        return Console(
            file=file,  # type: ignore[arg-type]
            force_terminal=force,
            no_color=True if color is Color.never else None,
            width=None if terminal else WIDE,
            soft_wrap=not terminal,
            emoji=False,
        )

    return Streams(
        console(sys.stdout, sys.stdout.isatty()),
        console(sys.stderr, sys.stderr.isatty()),
        verbosity,
        debug,
    )
