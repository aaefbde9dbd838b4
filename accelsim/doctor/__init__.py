"""What this machine has of what accelsim needs: `check_all` returns one `Check` a tool.

What comes in: the process's search path, installed packages and a folder. What goes out: typed
results, each with the way out. This room prints nothing and changes nothing.
"""

from __future__ import annotations

from accelsim.doctor.checks import Check, Machine, check_all, failures, this_machine

__all__ = ["Check", "Machine", "check_all", "failures", "this_machine"]
