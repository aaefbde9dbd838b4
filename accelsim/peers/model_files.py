"""Whole models in files, `NAME.tflite` and `NAME.onnx`, with `NAME.golden.npz` beside them.

What comes in: the data folder. What goes out: `PeerCase`s. A file is imported by
`accelsim.importer.load_model` like any user's model; as long as that knows no such file, the case
is out of scope. A TFLite golden has inputs `x` and LiteRT's reference output `y_ref`; an ONNX
golden has inputs `in_NAME` and ONNX Runtime's output without optimisation, `y_noopt`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import Backend
from accelsim.codegen import (
    compile_model,
    export_library,
    load_library,
    run_library,
    set_backend,
)
from accelsim.errors import InputError
from accelsim.importer import load_model
from accelsim.peers.case import NetworkTrial, OutOfScopeError, PeerCase, UnreadableError
from accelsim.quantize import quantize
from accelsim.spec.config import Config

OUTPUTS = {"tflite": "y_ref", "onnx": "y_noopt"}


def discover(suite: str, folder: Path) -> Iterator[PeerCase]:
    """Every model of the suite's folder that has a golden."""
    for path in sorted((folder / suite).glob(f"*.{suite}")):
        if golden(path).exists():
            yield PeerCase(suite, path.stem, partial(_load, suite, path))


def golden(path: Path) -> Path:
    """The golden beside a model."""
    return path.with_name(f"{path.stem}.golden.npz")


def _load(suite: str, path: Path) -> NetworkTrial:
    try:
        with np.load(golden(path), allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot read {golden(path).name}: {error}") from None
    inputs = [value for name, value in arrays.items() if name == "x" or name.startswith("in_")]
    if not inputs or OUTPUTS[suite] not in arrays:
        raise UnreadableError(f"{golden(path).name} has no inputs or no {OUTPUTS[suite]}")
    try:
        source = load_model(str(path))
    except InputError:
        raise OutOfScopeError(f"there is no importer of .{suite} files") from None
    return NetworkTrial(partial(_run, source, tuple(inputs)), arrays[OUTPUTS[suite]])


def _run(
    source: Any, inputs: tuple[NDArray[Any], ...], config: Config, backend: Backend
) -> NDArray[Any]:
    """The network's first output for every sample, compiled and run as a user's would be."""
    compiled = compile_model(quantize(source), config)
    with tempfile.TemporaryDirectory() as folder:
        machine = load_library(export_library(compiled, Path(folder) / "model.so"))
    set_backend(backend)
    samples = [
        run_library(machine, [value[i : i + 1] for value in inputs])[0]
        for i in range(len(inputs[0]))
    ]
    return np.concatenate(samples)
