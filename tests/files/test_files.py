"""Files and folders appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelsim.errors import InputError
from accelsim.files import check_writable, folder_for, whole_file, whole_folder, writing


def test_a_file_is_seen_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep/er/a.txt"
    with whole_file(path) as partial:
        partial.write_text("half")
        assert partial.name == path.name and not path.exists()
    assert path.read_text() == "half" and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_file_that_fails_leaves_the_old_one(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), whole_file(path) as partial:
        partial.write_text("new")
        raise error
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_folders_made_for_a_file_that_fails_are_gone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError), whole_file(tmp_path / "mine/deep/er/a.txt"):
        raise ValueError
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with whole_file(path) as first, whole_file(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.mkdir()
    (path / "stale").touch()
    with whole_folder(path) as filled:
        (filled / "new").touch()
        assert (path / "stale").exists()
    assert [inner.name for inner in path.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_take_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.mkdir()
    (path / "stale").touch()
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), whole_folder(path) as filled:
        (filled / "new").touch()
    assert (path / "stale").exists() and list(tmp_path.iterdir()) == [path]


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError), folder_for(tmp_path / "a/b") as made:
        (made / "c").touch()
        raise ValueError
    assert (tmp_path / "a/b/c").exists()


def test_asking_whether_a_file_can_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    check_writable(tmp_path / "deep/er/a.txt")
    for name, kind in (("file/a.txt", NotADirectoryError), ("folder", IsADirectoryError)):
        with pytest.raises(kind):
            check_writable(tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file/a.txt"
    with pytest.raises(InputError) as caught, writing(path, "use a folder"), whole_file(path):
        pass
    assert str(caught.value) == f"cannot write {path}: Not a directory; use a folder"


def test_a_written_file_may_be_read_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with whole_file(tmp_path / "a") as partial:
        partial.touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode
