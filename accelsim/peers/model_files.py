"""Whole models in files, `NAME.tflite` and `NAME.onnx`, with `NAME.golden.npz` beside them.

What comes in: the data folder. What goes out: `PeerCase`s. A file is imported by
`accelsim.importer.load_model` like any user's model; as long as that knows no such file, the case
is out of scope. A TFLite golden has inputs `x` and LiteRT's reference output `y_ref`; an ONNX
golden has inputs `in_NAME` and ONNX Runtime's output without optimisation, `y_noopt`, which has
islands between dequantize and quantize in float32; its integer operators in their place are what
counts then. Every layer's tensor is compared too, with what the framework has in the whole network.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.artifacts import I8, Backend, Program, RunResult
from accelsim.codegen import (
    compile_model,
    export_library,
    load_library,
    run_library,
    set_backend,
)
from accelsim.emit import read_tensor
from accelsim.errors import InputError
from accelsim.importer import load_model
from accelsim.peers.case import (
    NetworkRun,
    NetworkTrial,
    OutOfScopeError,
    PeerCase,
    UnreadableError,
)
from accelsim.quantize import quantize
from accelsim.reference import FrameworkGolden, Network, build_framework
from accelsim.reference.graph import read_network
from accelsim.reference.onnxruntime import OrtGolden
from accelsim.spec.config import Config

FLOATS = "without graph optimisation ONNX Runtime computes islands in float32"
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
    if suite == "onnx" and not source.already_quantized:
        raise OutOfScopeError("it computes in real numbers until it is quantized")
    run = partial(_run, source, tuple(inputs), source.framework != "torch")
    return NetworkTrial(run, arrays[OUTPUTS[suite]], FLOATS if suite == "onnx" else "")


def _run(
    source: Any,
    inputs: tuple[NDArray[Any], ...],
    layers: bool,
    config: Config,
    backend: Backend,
) -> NetworkRun:
    """The network's first output for every sample, compiled and run as a user's would be.

    With `layers` also every layer's tensor against the framework's.
    """
    quantized = quantize(source)
    compiled = compile_model(quantized, config)
    with tempfile.TemporaryDirectory() as folder:
        machine = load_library(export_library(compiled, Path(folder) / "model.so"))
    network = read_network(quantized.qdq, rounding=quantized.rounding)
    golden = build_framework(quantized, network) if layers else None
    runs: list[tuple[Program, RunResult]] = []
    set_backend(backend, observer=lambda launch, result: runs.append((launch.program, result)))
    samples, compared, wrong, own, within = [], 0, "", "", 0
    others: list[NDArray[Any]] = []
    for i in range(len(inputs[0])):
        sample = [value[i : i + 1] for value in inputs]
        runs.clear()
        samples.append(run_library(machine, sample)[0])
        if golden is None or wrong:
            continue
        named = dict(zip(quantized.input_names, sample, strict=True))
        if isinstance(golden, OrtGolden):
            (other, *_), tensors = golden.integer_whole(named)
            others.append(other)
        else:
            tensors = dict(golden.accumulated(named).tensors)
        found = _layers(golden, network, tensors, runs)
        compared, wrong = compared + found.compared, found.wrong
        own, within = own or found.own, max(within, found.within)
    outputs = np.concatenate(samples)
    if not isinstance(golden, OrtGolden) or len(others) != len(samples):
        return NetworkRun(outputs, compared, wrong)
    step = float(network.tensors[network.outputs[0]].scale) if network.outputs else 1.0
    return NetworkRun(outputs, compared, wrong, np.concatenate(others), step, own, within)


@dataclass(slots=True)
class _Found:
    """How the layers of one sample compared."""

    compared: int = 0
    wrong: str = ""
    own: str = ""
    within: int = 0


def _layers(
    golden: FrameworkGolden,
    network: Network,
    tensors: Mapping[str, I8],
    runs: Sequence[tuple[Program, RunResult]],
) -> _Found:
    """Each layer against the peer's tensor in the whole network, up to the first that differs.

    Behind a layer whose integers are accelsim's own, and within its bound, the peer's kernels of
    the later layers run on the NPU's tensors.
    """
    found = _Found()
    for program, result in runs:
        for layer in program.layers:
            name = layer.output
            if name not in tensors:
                found.wrong = f"the peer has no tensor of layer {layer.name}"
                return found
            values = read_tensor(program, result.dram, name)
            given = _inputs_of(network, name, program, result)
            expected = tensors[name].reshape(values.shape)
            if found.own and given is not None:
                expected = golden.run_layer(name, given).reshape(values.shape)
            wrong = int(np.count_nonzero(values != expected))
            if wrong:
                steps = int(np.abs(values.astype(np.int64) - expected).max())
                bound = None if given is None else golden.bound(name, given, values, expected)
                if bound is None or steps > bound:
                    text = f"{wrong} of {values.size} elements differ"
                    found.wrong = f"layer {layer.name}: {text}, by {steps} at most"
                    return found
                found.own, found.within = found.own or layer.name, max(found.within, steps)
            found.compared += values.size
    return found


def _inputs_of(
    network: Network, name: str, program: Program, result: RunResult
) -> tuple[I8, ...] | None:
    """What the layer read; None where a tensor of it never left the chip."""
    inputs = network.layer(name).inputs
    if any(one not in program.tensors for one in inputs):
        return None
    return tuple(read_tensor(program, result.dram, one) for one in inputs)
