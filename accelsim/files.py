"""Files and folders that appear whole or not at all.

What comes in: the path of what is to be, and code that writes it. What goes out: that file or
folder, or nothing where the code fails or is interrupted: no half of it, no empty folder made for
it. It must not know what is written.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from accelsim.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT)
SCRATCH = ".*.partial-*"  # folders that a killed process may leave beside what it wrote


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path of the same name to write to, whose file takes the place of `path` at the end.

    A reader sees the old file or the new one, and so do writers beside this one.
    """
    with folder_for(path.parent), _scratch(path) as scratch:
        written = scratch / path.name
        yield written
        written.replace(path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `path` and all that is in it at the end."""
    with folder_for(path.parent), _scratch(path) as scratch:
        filled, old = scratch / "new", scratch / "old"
        filled.mkdir()
        yield filled
        try:
            if path.exists():
                path.rename(old)
            filled.rename(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise


@contextmanager
def folder_for(path: Path) -> Iterator[Path]:
    """The folder, made where it is absent; unmade where the code fails and has put nothing in."""
    absent = _absent(path)
    try:
        _make(path)
        yield path
    except BaseException:
        _unmake(absent)
        raise


def check_writable(path: Path) -> None:
    """Raise OSError where no file could be written to `path`; leaves everything as it was."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    absent = _absent(path.parent)
    try:
        _make(path.parent)
        with _scratch(path):
            pass
    finally:
        _unmake(absent)


def _absent(folder: Path) -> list[Path]:
    """The folder and those around it that are not there, inner ones first."""
    return [one for one in (folder, *folder.parents) if not one.exists()]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # it is a file, which the system's words do not tell
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None


def _unmake(folders: Sequence[Path]) -> None:
    """Remove those of `_absent` that are there now, and empty."""
    for folder in folders:
        with suppress(OSError):  # absent, or something else is in it
            folder.rmdir()


@contextmanager
def writing(path: Path, instead: str = "") -> Iterator[None]:
    """Raise InputError that names `path` where it cannot be written, and what to do `instead`."""
    try:
        yield
    except OSError as error:
        advice = "free some space" if error.errno in FULL else instead
        hint = f"; {advice}" if advice else ""
        raise InputError(f"cannot write {path}: {error.strerror or error}{hint}") from error


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A folder beside `path`, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.partial-", dir=path.parent) as folder:
        yield Path(folder)
