"""The record file and the digests that the simulation computes, through the compiled C++ itself."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from accelsim.artifacts import Record
from accelsim.cosim.records import read_records
from accelsim.cosim.tools import find_toolchain

SOURCE = Path(__file__).parents[2] / "rtl/tb/npu_observe.cpp"
MULTIPLIER = 0x9E3779B97F4A7C15


@pytest.fixture(scope="module")
def observer(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("observe") / "observe.so"
    compiler = str(find_toolchain().gxx)
    command = [compiler, "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library)]
    subprocess.run([*command, str(SOURCE)], check=True)
    loaded = ctypes.CDLL(str(library))
    word = ctypes.c_uint64
    loaded.npu_observe_row.argtypes = [ctypes.c_uint32, word, ctypes.c_uint32, ctypes.c_void_p]
    loaded.npu_observe_retire.argtypes = [ctypes.c_uint32, ctypes.c_uint32, word, word]
    return loaded


def expected_digest(rows: dict[int, list[int]]) -> int:
    """The definition, in Python integers."""
    total = 0
    for address, words in rows.items():
        for column, word in enumerate(words):
            total += word * (((address * 64 + column + 1) * MULTIPLIER % 2**64) | 1)
    return total % 2**64


def observe(observer: ctypes.CDLL, engine: int, rows: dict[int, list[int]]) -> None:
    for address, words in rows.items():
        row = np.array(words, dtype=np.uint32)
        observer.npu_observe_row(engine, address, len(words), row.ctypes.data)


def test_records_hold_engine_index_cycles_and_digest(observer: ctypes.CDLL, tmp_path: Path) -> None:
    path = tmp_path / "records.bin"
    rng = np.random.default_rng(2)
    load = {a: rng.integers(0, 2**32, 4).tolist() for a in (0, 7, 2**40 + 3)}
    matrix = {a: rng.integers(0, 2**32, 32).tolist() for a in (5, 2**20 + 9)}
    assert observer.npu_observe_open(str(path).encode()) == 0
    observer.npu_observe_start(0)
    observer.npu_observe_start(1)
    observe(observer, 1, matrix)
    observe(observer, 0, load)
    observer.npu_observe_retire(0, 3, 10, 2**33)
    observer.npu_observe_start(0)
    observer.npu_observe_retire(0, 5, 2**33 + 1, 2**33 + 2)
    observer.npu_observe_retire(1, 4, 11, 20)
    observer.npu_observe_close()
    assert read_records(path) == (
        Record(0, 3, 10, 2**33, expected_digest(load)),
        Record(0, 5, 2**33 + 1, 2**33 + 2, 0),
        Record(1, 4, 11, 20, expected_digest(matrix)),
    )


def test_digest_does_not_depend_on_order(observer: ctypes.CDLL, tmp_path: Path) -> None:
    rows = {a: [a * 3, a ^ 0x55] for a in range(9)}
    digests = []
    for order in (sorted(rows), sorted(rows, reverse=True)):
        assert observer.npu_observe_open(str(tmp_path / "r").encode()) == 0
        observer.npu_observe_start(2)
        observe(observer, 2, {address: rows[address] for address in order})
        observer.npu_observe_retire(2, 0, 0, 0)
        observer.npu_observe_close()
        digests.append(read_records(tmp_path / "r")[0].digest)
    assert digests[0] == digests[1] == expected_digest(rows)


def test_unwritable_record_file_is_refused(observer: ctypes.CDLL, tmp_path: Path) -> None:
    assert observer.npu_observe_open(str(tmp_path / "absent" / "r").encode()) != 0


def test_torn_last_record_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(bytes(range(32)) + b"\1\2\3")
    assert len(read_records(tmp_path / "r")) == 1
