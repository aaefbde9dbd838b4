"""Facts about the cache of trained weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.zoo.cache import cache_dir, read_arrays, write_arrays

ARRAYS = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "count": np.array(7)}


def test_default_directory_is_build_cache_under_the_given_root(tmp_path: Path) -> None:
    assert cache_dir(tmp_path) == tmp_path / "build" / "cache"


def test_arrays_come_back_equal(tmp_path: Path) -> None:
    write_arrays(tmp_path / "deep" / "a.npz", ARRAYS)
    stored = read_arrays(tmp_path / "deep" / "a.npz")
    assert stored is not None
    assert stored.keys() == ARRAYS.keys()
    assert all(np.array_equal(stored[name], ARRAYS[name]) for name in ARRAYS)


def test_missing_file_reads_as_none(tmp_path: Path) -> None:
    assert read_arrays(tmp_path / "none.npz") is None


@pytest.mark.parametrize("position", [0, 64, 65, 200, -1])
def test_any_changed_byte_is_detected(tmp_path: Path, position: int) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, ARRAYS)
    data = bytearray(path.read_bytes())
    data[position] ^= 0x20
    path.write_bytes(data)
    assert (read_arrays(path) is None) == (position != 64)  # byte 64 is the newline


@pytest.mark.parametrize("kept", [0, 10, 64, 100])
def test_truncated_file_is_detected(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:kept])
    assert read_arrays(path) is None


def test_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npz", ARRAYS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.npz"]


def test_unwritable_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"a\.npz: Not a directory; choose another cache"):
        write_arrays(tmp_path / "file" / "a.npz", ARRAYS)
