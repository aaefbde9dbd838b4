"""Defaults of options from `accelsim.toml` or `[tool.accelsim]` of `pyproject.toml`; flags win.

A table a command: `[verify]` in accelsim.toml, `[tool.accelsim.verify]` in pyproject.toml. Keys are
long option names with underscores.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from accelsim.errors import InputError


def read_defaults(folder: Path | None = None) -> dict[str, Any]:
    """click's default map. Raises InputError for a file that is no valid TOML or has no tables."""
    base = Path() if folder is None else folder
    own, project = base / "accelsim.toml", base / "pyproject.toml"
    if own.is_file():
        return _checked(own, _read(own))
    if project.is_file():
        return _checked(project, _read(project).get("tool", {}).get("accelsim", {}))
    return {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def _checked(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    for name, value in table.items():
        if not isinstance(value, dict):
            raise InputError(
                f"{path}: {name} must be a table of options named after a command, like [verify]"
            )
    return {
        command: {key.replace("-", "_"): v for key, v in options.items()}
        for command, options in table.items()
    }
