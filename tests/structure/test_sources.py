"""The RTL is found from a checkout, and a wheel carries it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
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


def test_without_a_checkout_runs_leave_everything_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PACKAGE", tmp_path / "accelsim")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert sources.build_root() == tmp_path / "caches/accelsim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sources.build_root() == tmp_path / ".cache/accelsim"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment that has the wheel, and this one's other packages."""
    folder = tmp_path_factory.mktemp("environment") / "env"
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "-q", "--python", str(folder / "bin/python"), "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    for number, kind in enumerate(("purelib", "platlib")):
        (packages / f"others{number}.pth").write_text(sysconfig.get_path(kind), encoding="utf-8")
    return folder / "bin"


def run(installed: Path, folder: Path, *command: str) -> str:
    """Output of a program of that environment, started in an empty folder with an empty home."""
    here = folder / "here"
    here.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "XDG_", "COV"))}
    environment = {**kept, "HOME": str(folder), "VIRTUAL_ENV": str(installed.parent)}
    environment["PATH"] = f"{installed}{os.pathsep}{environment['PATH']}"
    program = [str(installed / command[0]), *command[1:]]
    done = subprocess.run(
        program, cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(here.iterdir()), "an empty folder stays empty"
    return done.stdout


def test_wheel_carries_package_rtl_and_vectors(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    carried = "accelsim/_sources"
    assert {
        "accelsim/__init__.py",
        f"{carried}/rtl/verible.rules",
        f"{carried}/vectors/edge8/max_pool/case.json",
    } <= names
    assert not any(name.startswith(("tests/", "build/", "rtl/", "vectors/")) for name in names)


def test_installed_package_finds_its_own_sources(installed: Path, tmp_path: Path) -> None:
    program = (
        "from accelsim import sources as s; from accelsim.cosim.build import cache_root;"
        "print(s.rtl_root(), s.vectors_root(), cache_root(), s.is_checkout())"
    )
    rtl, vectors, cache, checkout = run(installed, tmp_path, "python", "-c", program).split()
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    assert Path(rtl) == packages / "accelsim/_sources/rtl"
    assert Path(vectors) == packages / "accelsim/_sources/vectors"
    assert Path(cache) == tmp_path / ".cache/accelsim/cosim"
    assert checkout == "False"


def test_installed_doctor_finds_all_that_is_required(installed: Path, tmp_path: Path) -> None:
    assert "everything required is there" in run(installed, tmp_path, "accelsim", "doctor")


def test_installed_vectors_are_right_on_the_simulator(installed: Path, tmp_path: Path) -> None:
    command = ("accelsim", "vectors", "check", "edge8/max_pool", "--backend", "sim")
    assert ", right" in run(installed, tmp_path, *command)


def test_installed_package_plants_bugs_into_a_copy_in_the_cache(
    installed: Path, tmp_path: Path
) -> None:
    command = ("python", "-m", "accelsim.mutate", "--list")
    assert len(run(installed, tmp_path, *command).splitlines()) > 100
    assert list((tmp_path / ".cache/accelsim/cosim/mutants").rglob("*.sv"))


def test_installed_vectors_are_not_rewritten(installed: Path, tmp_path: Path) -> None:
    command = ("python", "-m", "accelsim.vectors", "--update", "--reason", "none")
    with pytest.raises(AssertionError, match="update them in a checkout"):
        run(installed, tmp_path, *command)
