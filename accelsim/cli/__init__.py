"""The command line. Only here do errors become exit codes and text for people.

Exit codes: 0 equal, 1 mismatch, 2 bad input or tool, 3 internal error, 124 time limit,
130 interrupted.
"""

from __future__ import annotations

from accelsim.cli.app import main

__all__ = ["main"]
