"""Report: what a run found, as JSON for scripts, a table for a terminal and a page for a browser.

What comes in: a `RunRecord`. What goes out: text. It compares nothing and decides nothing.
"""

from __future__ import annotations

from accelsim.report.document import SCHEMA, document
from accelsim.report.summary import verdict
from accelsim.report.terminal import print_report

__all__ = ["SCHEMA", "document", "print_report", "verdict"]
