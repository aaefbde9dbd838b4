"""The modules of a folder whose files are found, not listed: one more file is one more entry.

What comes in: a package's name. What goes out: its modules. It must not know what is in them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def modules_in(package: str) -> Iterator[ModuleType]:
    """The modules that lie in a package's folder, in the order of their names."""
    for name in module_names(package):
        yield importlib.import_module(f"{package}.{name}")


def module_names(package: str) -> list[str]:
    """Their names, without the package's."""
    folder = importlib.import_module(package).__path__
    return sorted(found.name for found in pkgutil.iter_modules(folder))
