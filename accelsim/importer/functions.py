"""A user's own function, `FILE.py:FUNCTION`, that data or a metric comes from.

What comes in: what the user typed. What goes out: a function whose faults are one sentence. It must
not know what the function is for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelsim.errors import AccelsimError, InputError, ModelError
from accelsim.importer.reasons import reason
from accelsim.importer.script import importable, loaded_function


def user_function(spec: str, purpose: str) -> Callable[..., Any]:
    """Load the function; it runs with its file's folder importable, as the file itself did.

    Args:
        spec: `FILE.py:FUNCTION`.
        purpose: what it is for, to begin sentences with: "metric", "data".

    Raises InputError where there is no such file or function; calling it raises InputError for
    whatever it raises itself.
    """
    path, separator, function = spec.rpartition(":")
    if not separator or not path.endswith(".py"):
        raise InputError(f"{purpose} '{spec}' is not of the form FILE.py:FUNCTION")
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{purpose} {spec}: file {path} does not exist")
    try:
        with importable(file.parent):
            found = loaded_function(file, function)
    except ModelError as error:
        raise InputError(f"{purpose} {spec}: {error}") from error

    def call(*arguments: Any) -> Any:
        try:
            with importable(file.parent):
                return found(*arguments)
        except AccelsimError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise InputError(f"{purpose} {spec} raised {reason(error)}") from error

    return call
