"""However a command ends, what it leaves is whole: no half of a file, and nothing empty."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accelsim.cli.console import Streams
from accelsim.errors import InputError
from accelsim.ops.outcome import Outcome, Stage
from accelsim.ops.results import merge_results
from tests.advise.test_advise import SCRIPT
from tests.calibrate import networks
from tests.cli.invocation import invoke
from tests.diagnose import nets
from tests.verify import tiny

LINEAR = f"{tiny.__file__}:linear"
EXPORT = ("vectors", "export", "edge8/add_relu", "--out", "deep/v", "--format")
COMMANDS = {
    "asm": ("asm", "end.asm", "--out", "deep/end.bin"),
    "compile": ("compile", LINEAR, "--out", "deep/out"),
    "run": ("run", LINEAR, "--out", "deep/y.npz"),
    "quantize": (
        *("quantize", f"{networks.__file__}:make", "--out", "deep/q", "--calibration", "minmax"),
        *("--equalize", "off", "--bias-correction", "off", "--no-sensitivity"),
        *("--keep-float", "fc"),
    ),
    "advise": (
        "advise",
        "net.py:make",
        *("--apply", "silu-relu6"),
        "--epochs",
        "0",
        "--out",
        "d/a",
    ),
    "verify": ("verify", LINEAR, "--backend", "sim", "--no-self-test", "--out", "deep/run"),
    "verify alone": ("verify", LINEAR, "--backend", "sim", "--no-self-test"),
    "diagnose": ("diagnose", f"{nets.__file__}:sound", "--backend", "sim", "--out", "deep/run"),
    "vectors bin": (*EXPORT, "bin"),
    "vectors memh": (*EXPORT, "memh"),
    "vectors c": (*EXPORT, "c"),
    "vectors npz": (*EXPORT, "npz"),
}
# The files that each command puts in place, the first one first; "" is its first word of progress.
PLACES = {
    "asm": ("end.bin",),
    "compile": ("", "model.so", "model.pt2", "model.json", "out"),
    "run": ("", "y.npz"),
    "quantize": ("", "model.json", "model.pt2", "model.onnx", "model.waivers.toml"),
    "advise": ("", "model.pt2"),
    "verify": ("run.json", "report.json", "", "inputs.npz", "model.pt2", "report.html", "model.so"),
    "verify alone": ("run.json",),
    "diagnose": ("run.json", "", "inputs.npz", "model.pt2", "model.so", "report.json"),
    "vectors bin": ("add_relu",),
    "vectors memh": ("add_relu",),
    "vectors c": ("add_relu.h",),
    "vectors npz": ("add_relu.npz",),
}
INTERRUPTED = [
    pytest.param(command, place, id=f"{command}-{place or 'begin'}")
    for command, places in PLACES.items()
    for place in places
]
NOTHING = ("asm", "compile", "run", "quantize", "advise", "verify alone", "vectors")
"""Commands that leave nothing where they are stopped at their first place."""


@contextlib.contextmanager
def ended_by(error: BaseException, place: str) -> Iterator[list[str]]:
    """`error` rises once, as a file of that name is put in place or progress is first told."""
    met: list[str] = []

    def meet(name: str) -> None:
        if name == place and not met:
            met.append(name)
            raise error

    replace, rename, progress = Path.replace, Path.rename, Streams.progress

    def replaced(self: Path, target: Path) -> Path:
        meet(target.name)
        return replace(self, target)

    def renamed(self: Path, target: Path) -> Path:
        meet(target.name)
        return rename(self, target)

    def told(self: Streams, message: str) -> None:
        meet("")
        progress(self, message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", replaced)
        patch.setattr(Path, "rename", renamed)
        patch.setattr(Streams, "progress", told)
        yield met


def left(folder: Path) -> list[Path]:
    """What is in the folder, every piece of it whole."""
    found = sorted(folder.rglob("*"))
    for path in found:
        assert ".partial" not in path.name, path
        assert any(path.iterdir()) if path.is_dir() else path.stat().st_size, f"{path} is empty"
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        if path.suffix == ".npz":
            np.load(path).files  # noqa: B018
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "end.asm").write_text("end\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("command", "place"), INTERRUPTED)
def test_an_interrupted_command_leaves_whole_files_only(
    folder: Path, command: str, place: str
) -> None:
    before = sorted(folder.rglob("*"))
    with ended_by(KeyboardInterrupt(), place) as met:
        result = invoke(folder, *COMMANDS[command])
    assert met and result.code == 130, result.err
    after = left(folder)
    if place == PLACES[command][0] and command.startswith(NOTHING):
        assert after == before


@pytest.mark.parametrize("command", PLACES)
def test_a_full_disk_is_one_sentence_and_leaves_whole_files_only(
    folder: Path, command: str
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with ended_by(full, PLACES[command][-1]) as met:
        result = invoke(folder, *COMMANDS[command])
    assert met and result.code == 2 and "; free some space" in result.err, result.err
    left(folder)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_results_that_are_not_written_leave_the_old_ones_or_nothing(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "deep/results.json"
    outcome = Outcome("add/one", Stage.SIM, "edge8", 8, 0)
    with ended_by(error, path.name), pytest.raises((KeyboardInterrupt, InputError)):
        merge_results(path, [("add", "one", "edge8", outcome)])
    assert not left(tmp_path)
    merge_results(path, [("add", "one", "edge8", outcome)])
    before = path.read_bytes()
    with ended_by(error, path.name), pytest.raises((KeyboardInterrupt, InputError)):
        merge_results(path, [("add", "two", "edge8", outcome)])
    assert path.read_bytes() == before and len(left(tmp_path)) == 2
