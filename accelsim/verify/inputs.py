"""The inputs of a run: a file of the user's, or a seeded choice from the model's own data."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import InputError


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch by input name, where it came from, and its label where it has one."""

    tensors: Mapping[str, np.ndarray]
    origin: str
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a network takes: names, shapes and dtypes of its inputs, in order."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @staticmethod
    def of(quantized: QuantizedModel) -> Signature:
        """The signature of a quantized model."""
        return Signature(quantized.input_names, quantized.input_shapes, quantized.input_dtypes)

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Signature:
        """From JSON. Raises KeyError or TypeError for something else."""
        shapes = tuple(tuple(int(extent) for extent in shape) for shape in stored["shapes"])
        return Signature(tuple(stored["names"]), shapes, tuple(stored["dtypes"]))


def choose_input(
    source: SourceModel, quantized: QuantizedModel, path: Path | None, seed: int
) -> Batch:
    """The batch to verify layer by layer. Raises InputError naming the input and its limit."""
    if path is not None:
        return Batch(read_input(path, Signature.of(quantized)), str(path))
    if source.test_inputs is not None and len(quantized.input_names) == 1:
        batch = quantized.input_shapes[0][0]
        start = int(np.random.default_rng(seed).integers(len(source.test_inputs) - batch + 1))
        label = None
        if source.test_labels is not None and batch == 1:
            label = int(source.test_labels[start])
        values = source.test_inputs[start : start + batch]
        return Batch({quantized.input_names[0]: values}, f"test image {start}", label)
    tensors = dict(zip(quantized.input_names, source.example_inputs, strict=True))
    return Batch(tensors, "the model's example input")


def read_input(path: Path, signature: Signature) -> dict[str, np.ndarray]:
    """A `.npz` keyed by input name, or a `.npy` for a model with one input."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except OSError as error:
        reason = error.strerror or "it is not a NumPy file"
        raise InputError(f"cannot read input {path}: {reason}") from None
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise InputError(f"input {path} is not an intact .npz or .npy file of numbers") from None
    names = signature.names
    if isinstance(loaded, np.ndarray):
        if len(names) != 1:
            raise InputError(f"input {path}: a .npy cannot feed {len(names)} inputs; use a .npz")
        arrays = {names[0]: loaded}
    else:
        try:
            arrays = {name: loaded[name] for name in loaded.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"input {path} is damaged: {error}") from None
    missing = [n for n in names if n not in arrays]
    extra = [n for n in arrays if n not in names]
    if missing or extra:
        raise InputError(
            f"input {path} has {', '.join(arrays) or 'nothing'}; the model's inputs are "
            f"{', '.join(names)}"
        )
    return {
        name: _checked(path, name, arrays[name], shape, dtype)
        for name, shape, dtype in zip(names, signature.shapes, signature.dtypes, strict=True)
    }


def _checked(
    path: Path, name: str, values: np.ndarray, shape: tuple[int, ...], dtype: str
) -> np.ndarray:
    if values.shape != tuple(shape) or values.dtype != np.dtype(dtype):
        raise InputError(
            f"input {path}: {name} is {values.dtype} of shape {values.shape}, expected {dtype} of "
            f"shape {tuple(shape)}"
        )
    if not np.all(np.isfinite(values)):
        raise InputError(f"input {path}: {name} has values that are not finite")
    return values


def balanced(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Indices of `count` samples with class counts that differ by at most one, seeded."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    rank = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        members = order[labels[order] == label]
        rank[members] = np.arange(len(members))
    by_rank = order[np.argsort(rank[order], kind="stable")]
    return np.sort(by_rank[:count])
