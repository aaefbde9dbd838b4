"""Defaults of options from `accelsim.toml` or `[tool.accelsim]` of `pyproject.toml`; flags win.

A table a command: `[verify]` in accelsim.toml, `[tool.accelsim.verify]` in pyproject.toml; global
options stand beside the tables. Keys are long option names, with - or _. Unknown names are errors.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from accelsim.errors import InputError

Options = Mapping[str, bool]  # option → whether it may be repeated


def read_defaults(
    commands: Mapping[str, Options], everywhere: Options, folder: Path | None = None
) -> dict[str, Any]:
    """click's default map.

    Raises InputError that names file, table and key for anything but known options with values.
    """
    base = Path() if folder is None else folder
    own, project = base / "accelsim.toml", base / "pyproject.toml"
    if own.is_file():
        return _checked(str(own), _read(own), commands, everywhere)
    if project.is_file():
        tool = _read(project).get("tool", {})
        if not isinstance(tool, dict):
            raise InputError(f"{project}: tool must be a table")
        table = tool.get("accelsim", {})
        if not isinstance(table, dict):
            raise InputError(f"{project}: tool.accelsim must be a table")
        return _checked(f"{project}, tool.accelsim", table, commands, everywhere)
    return {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def _checked(
    where: str, table: dict[str, Any], commands: Mapping[str, Options], everywhere: Options
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            if name not in commands:
                raise InputError(_unknown(where, "command", name, commands))
            options = {key.replace("-", "_"): v for key, v in value.items()}
            result[name] = _values(f"{where}, {name}", options, commands[name])
        elif name in commands:
            raise InputError(
                f"{where}: {name} is a command; write its options into a table [{name}]"
            )
        else:
            result |= _values(where, {name.replace("-", "_"): value}, everywhere)
    return result


def _values(where: str, given: dict[str, Any], known: Options) -> dict[str, Any]:
    for key, value in given.items():
        if key not in known:
            raise InputError(_unknown(where, "option", key, known))
        plain = isinstance(value, (str, int, float))
        if not plain and not (known[key] and isinstance(value, list)):
            raise InputError(f"{where}: {key} cannot be a {type(value).__name__}")
    return {k: [v] if known[k] and not isinstance(v, list) else v for k, v in given.items()}


def _unknown(where: str, kind: str, name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    names = ", ".join(sorted(known))
    hint = (
        f"did you mean {close[0]}?" if close else f"use one of {names}" if names else "it has none"
    )
    return f"{where}: there is no {kind} {name!r}; {hint}"
