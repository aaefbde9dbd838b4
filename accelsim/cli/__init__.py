"""The command line. Only here do errors become exit codes and text for people.

Exit codes: 0 equal, 1 mismatch, 2 bad input or tool, 3 internal error, 124 time limit,
130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; never show a traceback without --debug."""
    try:
        # Imported here, so that Ctrl-C while it is imported ends as Ctrl-C later does.
        from accelsim.cli.app import run
    except KeyboardInterrupt:
        print("accelsim: interrupted", file=sys.stderr)
        sys.exit(130)
    run(arguments)
