"""Typed errors of accelsim: what went wrong, in one sentence, and the way out.

Library code raises these; only the command line turns them into exit codes.
"""

from __future__ import annotations

from collections.abc import Mapping

INTERRUPTED = 130  # exit code after Ctrl-C


class AccelsimError(Exception):
    """Base of every error that a user can cause or must act on (exit code 2)."""

    exit_code = 2


class ModelError(AccelsimError):
    """The model file, an operator in it, its shapes or its dtypes cannot be used."""


class InputError(AccelsimError):
    """An input tensor, an option or a configuration is missing or out of range."""


class ProgramError(AccelsimError):
    """A program is illegal: its encoding, an address extent, a hash or its synchronisation."""


class ToolError(AccelsimError):
    """A tool that the run needs (Verilator, g++, make, perl, cocotb) is missing or failed."""


class TimeLimitError(AccelsimError):
    """A run exceeded its time or cycle limit.

    `instruction` is the lowest index that had not retired, where that is known; `digests` are
    those of the instructions that had.
    """

    exit_code = 124
    instruction: int | None = None
    digests: Mapping[int, int] | None = None


class RtlError(AccelsimError):
    """The RTL broke a rule of its own: an assertion fired, or it wrote outside every region.

    `instruction` is the lowest index that had not retired, where that is known; `digests` are
    those of the instructions that had.
    """

    exit_code = 1
    instruction: int | None = None
    digests: Mapping[int, int] | None = None


def ending(error: BaseException) -> tuple[str, int]:
    """One sentence about what ended a run, and its exit code; 3 where the fault is accelsim's."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    code = error.exit_code if isinstance(error, AccelsimError) else 3
    return str(error) or type(error).__name__, code
