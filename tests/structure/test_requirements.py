"""constraints.txt pins exactly what pyproject.toml asks for and what the sources import."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

from tests.structure import requirements, tree

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PINS = requirements.pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
DECLARED = requirements.declared(PYPROJECT, requirements.INSTALLED_EXTRAS)
OWN = {"accelsim", "tests", "tools", "bench"}


@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_pin_lies_in_the_declared_range(requirement: requirements.Requirement) -> None:
    pin = PINS[requirements.canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin)


def test_constraints_pin_all_that_an_install_brings_and_nothing_else() -> None:
    assert requirements.closure(DECLARED) == set(PINS)


def test_environment_has_the_pinned_versions() -> None:
    installed = {name: Version(metadata.version(name)) for name in PINS}
    public = {name: Version(version.public) for name, version in installed.items()}
    assert public == PINS


def test_constraints_cover_every_import() -> None:
    files = tree.tracked_tree(ROOT)
    sources = ((path, files.read(path)) for path in files.named(".py"))
    found = [s for p, text in sources for s in requirements.unpinned_imports(p, text, PINS, OWN)]
    assert found == []


def test_uncovered_import_is_found() -> None:
    text = "import numpy, os\nfrom unheard.of import thing\nfrom . import near\n"
    found = requirements.unpinned_imports(Path("a.py"), text, PINS, OWN)
    assert found == ["a.py imports unheard, which constraints.txt does not cover"]


@pytest.mark.parametrize("line", ["a>=1", "a==1.*", "a", "a==1\na==2"])
def test_loose_pin_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        requirements.pins(line)


def test_torch_pin_has_no_local_suffix() -> None:
    assert PINS["torch"].local is None
