"""Running a file that registers operators of a team's own.

What comes in: a path. What goes out: nothing. It must not know what the file registers.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from accelsim.errors import InputError


def load_extension(path: Path) -> None:
    """Run a file that registers pieces. Raises InputError where it is missing or fails."""
    name = f"accelsim_extension_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise InputError(f"there is no Python file {path} to extend accelsim with")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except InputError:
        raise
    except Exception as error:  # the user's code runs here
        raise InputError(f"{path} failed: {type(error).__name__}: {error}") from error
