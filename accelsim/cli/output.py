"""Writing JSON results to a file or to stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelsim.errors import InputError
from accelsim.files import whole_file, writing


def check_json_target(target: str | None) -> None:
    """Refuse a folder, or a file in a folder that is not there, before long work, not after it."""
    if target is None or target == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder; give a file or -")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: {path.parent} is not a folder")


def write_json_output(target: str, content: Mapping[str, Any]) -> None:
    """To stdout for `-`, else to a file, whole or not at all. Raises InputError if it cannot."""
    text = json.dumps(content, indent=1) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    path = Path(target)
    with writing(path), whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
