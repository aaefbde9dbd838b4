"""The loop for one module finds its tests, or those of what instantiates it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import rtl_loop


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """RTL of three levels, tests of the middle one through a wrapper and of the top."""
    rtl, tests = tmp_path / "rtl", tmp_path / "tests"
    (tests / "mid").mkdir(parents=True)
    rtl.mkdir()
    (rtl / "leaf.sv").write_text("module leaf;\nendmodule\n")
    (rtl / "mid.sv").write_text("module mid;\n  leaf u_leaf ();\nendmodule\n")
    (rtl / "top.sv").write_text("module top;  // leaf\n  mid u_mid ();\nendmodule\n")
    (rtl / "alone.sv").write_text("module alone;\nendmodule\n")
    (tests / "mid/bench.sv").write_text("module bench;\n  mid u_mid ();\nendmodule\n")
    (tests / "mid/test_bench.py").write_text("run_unit('bench')\n")
    (tests / "test_top.py").write_text("run_unit('top')\n")
    return rtl, tests


@pytest.mark.parametrize(
    ("module", "through", "files"),
    [
        ("mid", ("mid",), ("test_bench.py",)),
        ("leaf", ("mid",), ("test_bench.py",)),
        ("top", ("top",), ("test_top.py",)),
        ("alone", (), ()),
    ],
)
def test_nearest_tests_of_a_module_are_found(
    places: tuple[Path, Path], module: str, through: tuple[str, ...], files: tuple[str, ...]
) -> None:
    found = rtl_loop.nearest_tests(*places, module)
    assert (found[0], tuple(path.name for path in found[1])) == (through, files)


def test_unknown_module_is_refused_with_the_nearest_names(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rtl_loop, "ROOT", places[0].parent)
    assert rtl_loop.main(["leef"]) == 2
    assert "nearest: leaf" in capsys.readouterr().err


def test_missing_module_name_is_refused() -> None:
    assert rtl_loop.main([]) == 2
