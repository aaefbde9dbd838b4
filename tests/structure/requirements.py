"""What the project's files require, as plain data, to check pyproject.toml and constraints.txt.

What comes in: texts, and metadata of installed distributions. What goes out: names and versions.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

INSTALLED_EXTRAS = ("compile", "cosim", "report", "peers", "pt2e", "dev")


def pins(text: str) -> dict[str, Version]:
    """Canonical name → version of a constraints file; every line must be an exact pin."""
    found: dict[str, Version] = {}
    for line in text.splitlines():
        content = line.split("#")[0].strip()
        if not content:
            continue
        requirement = Requirement(content)
        (specifier,) = requirement.specifier
        if specifier.operator != "==" or requirement.url or "*" in specifier.version:
            raise ValueError(f"{line!r} is no exact pin")
        name = canonicalize_name(requirement.name)
        if name in found:
            raise ValueError(f"{name} is pinned twice")
        found[name] = Version(specifier.version)
    return found


def declared(pyproject: str, extras: Iterable[str]) -> list[Requirement]:
    """Requirements of the package, the named extras and the build system."""
    content = tomllib.loads(pyproject)
    project = content["project"]
    lines = [*project["dependencies"], *content["build-system"]["requires"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def closure(wanted: Iterable[Requirement]) -> set[str]:
    """Canonical names of all that installing `wanted` brings, by installed metadata."""
    found: set[str] = set()
    waiting = [(canonicalize_name(r.name), frozenset(r.extras)) for r in wanted]
    while waiting:
        name, extras = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for line in metadata.distribution(name).requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            environments = [{"extra": extra} for extra in (*extras, "")]
            if marker is None or any(marker.evaluate(e) for e in environments):
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return found


def third_party_imports(path: Path, text: str, own: Iterable[str]) -> Iterator[str]:
    """Top-level modules that a file imports and that are neither `own` nor Python's."""
    for node in ast.walk(ast.parse(text, filename=str(path))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in own:
                yield top


@cache
def providers() -> dict[str, frozenset[str]]:
    """Top-level module → canonical names of the installed distributions that provide it."""
    found = metadata.packages_distributions()
    return {top: frozenset(map(canonicalize_name, names)) for top, names in found.items()}


def unpinned_imports(path: Path, text: str, pinned: Iterable[str], own: Iterable[str]) -> list[str]:
    """Imports of a file that no pinned distribution provides."""
    known = set(pinned)
    return [
        f"{path} imports {top}, which constraints.txt does not cover"
        for top in sorted(set(third_party_imports(path, text, own)))
        if not known & providers().get(top, frozenset())
    ]
