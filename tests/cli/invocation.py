"""Calling the command line in this process, as a shell would from a folder."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelsim.cli import main


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of stderr."""
        return (self.err.splitlines() or [""])[-1]


def invoke(folder: Path, *arguments: str) -> Result:
    """Run a command in `folder`; neither stream is a terminal."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(error.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def report_of(folder: Path) -> dict[str, Any]:
    """report.json of a run folder."""
    content: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return content
