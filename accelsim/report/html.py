"""The report as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from accelsim.report.terminal import verdict


def write_html(path: Path, report: dict[str, Any], lanes: int) -> None:
    """Write the page, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(page(report, lanes), encoding="utf-8")
    partial.replace(path)


def page(report: dict[str, Any], lanes: int) -> str:
    """HTML text of a report document."""
    return f"<!doctype html><title>accelsim</title><p>{escape(verdict(report))}</p>\n"
