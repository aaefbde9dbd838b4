"""The run folder: no two runs share one, and no reader sees half a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.spec.config import CONFIGS
from accelsim.verify import folder
from tests.cosim.test_session import copy_program

NOW = datetime(2030, 1, 2, 3, 4, 5)


def test_runs_that_start_in_one_second_each_have_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPool(8) as pool:
        found = pool.map(lambda _: folder.claim_folder("zoo:net", NOW), range(8))
    names = {path.name for path in found}
    first = "20300102-030405-zoo-net"
    assert names == {first, *(f"{first}-{number}" for number in range(2, 9))}
    assert all(path.is_dir() and folder.prepare(path) == path for path in found)


def test_a_place_that_cannot_hold_run_folders_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").write_text("not a folder")
    with pytest.raises(InputError, match=r"cannot write build/runs.*choose another --out"):
        folder.claim_folder("net", NOW)


def write_inputs(path: Path, value: int) -> None:
    folder.write_inputs(path, {"x": np.full(4, value, np.float32)})


def write_programs(path: Path, value: int) -> None:
    del value
    folder.write_programs(path, (copy_program(),))


def write_run(path: Path, value: int) -> None:
    folder.write_run(path, CONFIGS["edge8"], {"value": value})


def keep_waivers(path: Path, value: int) -> None:
    source = path.parent / "given.toml"
    source.write_text(f"# {value}\n")
    folder.keep_waivers(path, source)


WRITERS = {
    "inputs.npz": write_inputs,
    "copy.program": write_programs,
    "run.json": write_run,
    "waivers.toml": keep_waivers,
}


@pytest.mark.parametrize(("name", "write"), WRITERS.items())
def test_a_file_is_put_in_place_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Callable[[Path, int], None]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write(run, 1)
    before = (run / name).read_bytes()

    def interrupted(path: Path, target: Path) -> Path:
        assert path.parent.parent == run and target == run / name
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(run, 2)
    assert [path.name for path in run.iterdir()] == [name]
    assert (run / name).read_bytes() == before


def test_two_runs_cannot_have_one_folder_at_a_time(tmp_path):
    with folder.held(tmp_path / "r") as first:
        (first / "run.json").write_text("{}")
        with pytest.raises(InputError, match="another run is writing to"), folder.held(first):
            pass
        assert (first / "run.json").is_file()
    with folder.held(first):
        assert not list(first.iterdir())
