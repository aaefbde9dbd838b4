"""The `accelsim` command: global options, commands, and the one place where errors end."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from accelsim import __version__
from accelsim.cli import (
    commands_advise,
    commands_compile,
    commands_diagnose,
    commands_ops,
    commands_program,
    commands_quantize,
    commands_replay,
    commands_tools,
    commands_verify,
)
from accelsim.cli.console import Color, nobody_reads, streams, writable_streams
from accelsim.cli.defaults import Options, read_defaults
from accelsim.cli.stops import stoppable
from accelsim.errors import AccelsimError
from accelsim.files import FULL
from accelsim.vectors import cli as vectors

# click's base error; typer brings a click of its own from 0.26 and depends on click before that.
UsageError = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

# Global options that may also stand behind the command.
FLAGS = ("-q", "--quiet", "-v", "-vv", "--verbose", "--debug")
VALUED = ("--color",)

app = typer.Typer(
    name="accelsim",
    help="Bring a neural network onto an accelerator, and know that it is right.",
    epilog="Exit codes: 0 equal, 1 mismatch, 2 bad input or tool, 3 internal error, 124 time "
    "limit, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"accelsim {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More detail.")] = 0,
    color: Annotated[
        Color, typer.Option(help="When to colour; NO_COLOR is honoured.")
    ] = Color.auto,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print and exit.")
    ] = False,
) -> None:
    """Global options stand before the command or behind it."""
    context.obj = streams(color, -1 if quiet else verbose, debug)


for module in (
    commands_verify,
    commands_replay,
    commands_compile,
    commands_quantize,
    commands_advise,
    commands_diagnose,
    commands_program,
    commands_ops,
    commands_tools,
    vectors,
):
    module.register(app)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; never show a traceback without --debug."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    writable_streams()
    code = _run(globals_first(given))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads(sys.stdout)
    except OSError as error:
        nobody_reads(sys.stdout)
        code = code or _say(f"cannot write to stdout: {error.strerror}", 2, debug=False)
    sys.exit(code)


def globals_first(arguments: Sequence[str]) -> list[str]:
    """Move the global options to the front, so that they may stand anywhere before `--`."""
    front: list[str] = []
    rest: list[str] = []
    items = iter(arguments)
    for item in items:
        if item == "--":
            rest += [item, *items]
        elif item in FLAGS or item.startswith(tuple(f"{name}=" for name in VALUED)):
            front.append(item)
        elif item in VALUED:
            front += [item, *([value] if (value := next(items, None)) is not None else [])]
        else:
            rest.append(item)
    return front + rest


def _options(command: Any) -> Options:
    """Names of a command's parameters, and whether they may be repeated."""
    return {p.name: bool(p.multiple) for p in command.params if hasattr(p, "multiple")}


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        command: Any = typer.main.get_command(app)
        known = {name: _options(one) for name, one in command.commands.items()}
        completing = "_ACCELSIM_COMPLETE" in os.environ
        defaults = {} if completing else read_defaults(known, _options(command))
        with stoppable(None) as stop:  # from the first import on
            result = command.main(
                arguments, prog_name="accelsim", standalone_mode=False, default_map=defaults
            )
        if stop.reason is not None:  # typer makes an exit code of it, without a word
            raise stop.reason
        return result if isinstance(result, int) else 0
    except AccelsimError as error:
        return _say(str(error), error.exit_code, debug)
    except typer.Exit as error:
        return int(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted", 130, debug)
    except BrokenPipeError:
        nobody_reads(sys.stdout)
        return 0
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        nobody_reads(sys.stdout)  # typer makes an exit code of it, which would be a verdict
        return 0
    except OSError as error:
        if error.errno not in FULL:
            text = f"internal error: {type(error).__name__}: {error}; --debug shows where"
            return _say(text, 3, debug)
        where = error.filename or "what was found"
        return _say(f"cannot write {where}: {error.strerror}; free some space", 2, debug)
    except Exception as error:  # the last resort: an internal error is a bug of ours
        if isinstance(error, UsageError):
            return _say(str(error.format_message()), 2, debug)  # type: ignore[attr-defined]
        text = f"internal error: {type(error).__name__}: {error}; --debug shows where"
        return _say(text, 3, debug)


def _say(text: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    try:
        print(f"accelsim: {text}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        nobody_reads(sys.stderr)
    return code
