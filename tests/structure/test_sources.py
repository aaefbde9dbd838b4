"""The RTL is found from a checkout, and a wheel carries it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from accelsim import sources
from accelsim.errors import InputError, ToolError

ROOT = Path(__file__).parents[2]


def plant(root: Path) -> Path:
    """An RTL folder with one configuration."""
    (root / "gen/small").mkdir(parents=True)
    (root / "gen/small/npu_pkg.sv").touch()
    (root / "files.f").write_text("// order\na.sv  // first\n\nsub/b.sv\n", encoding="utf-8")
    return root


def test_package_comes_first_then_the_list_in_order(tmp_path: Path) -> None:
    root = plant(tmp_path)
    names = [path.relative_to(root).as_posix() for path in sources.rtl_files("small", root)]
    assert names == ["gen/small/npu_pkg.sv", "a.sv", "sub/b.sv"]


def test_unknown_configuration_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"large .*generated: small\."):
        sources.rtl_files("large", plant(tmp_path))


@pytest.mark.parametrize("place", ["rtl", "accelsim/_sources/rtl"])
def test_rtl_is_found_beside_and_in_the_package(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / place)
    monkeypatch.setattr(sources, "PACKAGE", tmp_path / "accelsim")
    assert sources.rtl_root() == tmp_path / place


def test_missing_rtl_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PACKAGE", tmp_path / "accelsim")
    with pytest.raises(ToolError, match="install accelsim again"):
        sources.rtl_root()


def test_checkout_keeps_what_runs_leave_in_build() -> None:
    assert sources.build_root() == ROOT / "build"


def test_wheel_carries_package_and_rtl(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"accelsim/__init__.py", "accelsim/_sources/rtl/verible.rules"} <= names
    assert not any(name.startswith(("tests/", "build/", "rtl/")) for name in names)
