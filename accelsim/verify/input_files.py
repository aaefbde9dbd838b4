"""Input files of the user's: what a network takes, and what a file must hold for it.

A file is a `.npy` for a model with one input, or a `.npz` with an array for each input: by its
name (or with `_` for what is no letter), by `in_NAME`, or `x` where there is one input only. Arrays
have the model's own dtypes and layout. Where verification takes it, a file may hold several batches
one after another, `labels`, one a sample as the metric takes it, and the `golden` (or `y_ref`,
`y_noopt`) of the model's first output; other arrays named `y_…` or `pre_…` are passed over.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.artifacts import QuantizedModel
from accelsim.errors import InputError

LABELS = ("labels", "label")
GOLDEN = ("golden", "y_ref", "y_noopt")
PASSED_OVER = ("y_", "pre_")


@dataclass(frozen=True, slots=True)
class Samples:
    """Batches one after another, with what is known of each sample."""

    inputs: Mapping[str, np.ndarray]  # by input name; the first axis holds batch after batch
    origin: str
    labels: np.ndarray | None = None  # (samples, ...): class numbers, or what the metric takes
    golden: np.ndarray | None = None  # of the model's first output, (samples, ...)
    passed_over: tuple[str, ...] = ()  # names of other goldens in the file

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it under the names that a file has."""
        known = {"labels": self.labels, "golden": self.golden}
        return {**self.inputs, **{name: one for name, one in known.items() if one is not None}}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a network takes: names, shapes and dtypes of its inputs, in order.

    `limits` has the least and greatest value of those that index a table.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    limits: Mapping[str, tuple[int, int]] | None = None

    @staticmethod
    def of(quantized: QuantizedModel) -> Signature:
        """The signature of a quantized model."""
        limits = None
        if quantized.qdq is not None:
            from accelsim.quantize.ranges import token_limits

            limits = token_limits(quantized.qdq)
        names, shapes = quantized.input_names, quantized.input_shapes
        return Signature(names, shapes, quantized.input_dtypes, limits)

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Signature:
        """From JSON. Raises KeyError or TypeError for something else."""
        shapes = tuple(tuple(int(extent) for extent in shape) for shape in stored["shapes"])
        limits = {
            str(name): (int(low), int(high))
            for name, (low, high) in (stored.get("limits") or {}).items()
        }
        return Signature(tuple(stored["names"]), shapes, tuple(stored["dtypes"]), limits)


def read_input(path: Path, signature: Signature) -> dict[str, np.ndarray]:
    """One batch of a file, and nothing else in it."""
    arrays = _named(path, _load(path, signature.names), signature.names)
    _refuse_others(path, arrays, signature.names)
    return {
        name: _checked(path, name, arrays[name], shape, dtype, signature, many=False)
        for name, shape, dtype in zip(*_fields(signature), strict=True)
    }


def read_samples(path: Path, signature: Signature) -> Samples:
    """All batches of a file, with labels and golden where it has them."""
    arrays = _named(path, _load(path, signature.names), signature.names)
    labels = next((arrays.pop(name) for name in LABELS if name in arrays), None)
    golden = next((arrays.pop(name) for name in GOLDEN if name in arrays), None)
    others = [one for one in arrays if one not in signature.names and one.startswith(PASSED_OVER)]
    arrays = {name: value for name, value in arrays.items() if name not in others}
    _refuse_others(path, arrays, signature.names)
    inputs = {
        name: _checked(path, name, arrays[name], shape, dtype, signature, many=True)
        for name, shape, dtype in zip(*_fields(signature), strict=True)
    }
    counts = {
        name: len(inputs[name]) // shape[0]
        for name, shape in zip(signature.names, signature.shapes, strict=True)
        if shape
    }
    if len(set(counts.values())) > 1:
        raise InputError(f"input {path}: its arrays hold different numbers of batches: {counts}")
    samples = len(next(iter(inputs.values()))) if signature.shapes[0] else 1
    if labels is not None and labels.shape[:1] != (samples,):
        raise InputError(
            f"input {path}: labels are of shape {labels.shape}, expected {samples} samples"
        )
    if golden is not None and golden.shape[:1] != (samples,):
        raise InputError(
            f"input {path}: the golden has shape {golden.shape}, expected {samples} samples"
        )
    return Samples(inputs, f"the samples of {path.name}", labels, golden, tuple(others))


def arrays_of(path: Path, signature: Signature) -> dict[str, np.ndarray]:
    """Everything in a file, inputs under the model's names of them, whatever their shapes."""
    return _named(path, _load(path, signature.names), signature.names)


def _fields(signature: Signature) -> tuple[Any, Any, Any]:
    return signature.names, signature.shapes, signature.dtypes


def _load(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of a file by their names in it."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except OSError as error:
        reason = error.strerror or "it is not a NumPy file"
        raise InputError(f"cannot read input {path}: {reason}") from None
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise InputError(f"input {path} is not an intact .npz or .npy file of numbers") from None
    if isinstance(loaded, np.ndarray):
        if len(names) != 1:
            raise InputError(f"input {path}: a .npy cannot feed {len(names)} inputs; use a .npz")
        return {names[0]: loaded}
    try:
        return {name: loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"input {path} is damaged: {error}") from None


def _named(
    path: Path, arrays: dict[str, np.ndarray], names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """The same with every input under the model's name of it."""
    found = dict(arrays)
    for name in names:
        plain = re.sub(r"\W", "_", name)
        others = [plain, f"in_{name}", f"in_{plain}", *(["x"] if len(names) == 1 else [])]
        known = next((one for one in (name, *others) if one in found), None)
        if known is None:
            raise InputError(
                f"input {path} has {', '.join(arrays) or 'nothing'}; the model's inputs are "
                f"{', '.join(names)}"
            )
        found[name] = found.pop(known)
    return found


def _refuse_others(path: Path, arrays: Mapping[str, np.ndarray], names: tuple[str, ...]) -> None:
    if any(name not in names for name in arrays):
        raise InputError(
            f"input {path} has {', '.join(arrays)}; the model's inputs are {', '.join(names)}"
        )


def _checked(
    path: Path,
    name: str,
    values: np.ndarray,
    shape: tuple[int, ...],
    dtype: str,
    signature: Signature,
    *,
    many: bool,
) -> np.ndarray:
    """An input of the model's shape, or with `many` of several such behind one another."""
    fits = values.shape == shape
    if many and shape and values.ndim == len(shape):
        whole = len(values) > 0 and len(values) % shape[0] == 0
        fits = values.shape[1:] == shape[1:] and whole
    if not fits or values.dtype != np.dtype(dtype):
        more = ", or several of them one after another" if many else ""
        raise InputError(
            f"input {path}: {name} is {values.dtype} of shape {values.shape}, expected {dtype} of "
            f"shape {tuple(shape)}{more}"
        )
    if not np.all(np.isfinite(values)):
        raise InputError(f"input {path}: {name} has values that are not finite")
    low, high = (signature.limits or {}).get(name, (None, None))
    if low is not None and high is not None and (values.min() < low or values.max() > high):
        raise InputError(
            f"input {path}: {name} has values from {values.min()} to {values.max()}; the model's "
            f"table has rows {low} to {high}"
        )
    return values
