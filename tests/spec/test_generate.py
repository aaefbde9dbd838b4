"""Generated files are current, and the check can fail."""

from __future__ import annotations

from pathlib import Path

from accelsim.spec.generate import generated_files, stale, write
from accelsim.spec.generate.__main__ import main


def test_committed_files_are_current() -> None:
    assert stale() == []


def test_an_edit_by_hand_and_a_missing_file_are_stale(tmp_path: Path) -> None:
    assert set(write(tmp_path)) == set(generated_files())
    assert stale(tmp_path) == []
    manual = tmp_path / "docs/isa.md"
    manual.write_text(manual.read_text() + "\n")
    (tmp_path / "rtl/gen/edge8/npu.h").unlink()
    assert set(stale(tmp_path)) == {"docs/isa.md", "rtl/gen/edge8/npu.h"}


def test_unknown_argument_is_refused() -> None:
    assert main(["--chek"]) == 2
