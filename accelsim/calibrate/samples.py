"""Samples to calibrate with or to test on, from a file or a user's function.

What comes in: `X.npz`, `X.npy` or `FILE.py:FUNCTION`, and the model whose inputs they are for. What
goes out: arrays, one for each input, that fit the model; anything else is one sentence. It must not
know how a model is quantized.

A `.npz` is keyed by input name, as for `accelsim verify --input`; one array of any name will do for
a model of one input. The first axis counts samples. Labels, where there are some, are `labels`. A
function returns one of

* an array or tensor, the only input;
* a dict, as the `.npz`;
* a tuple of the inputs in the model's order, then labels if there are some;
* a list, generator or data loader of batches, each one of the above.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError
from accelsim.importer.functions import user_function
from accelsim.importer.reasons import reason

LABELS = ("labels", "label")
PASSED_OVER = ("golden", "y_", "pre_")


@dataclass(frozen=True, slots=True)
class Samples:
    """Arrays (samples, …), one for each input of a model in its order, and labels (samples, …)."""

    inputs: tuple[np.ndarray, ...]
    labels: np.ndarray | None
    origin: str

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.inputs[0])

    def spread(self, count: int) -> Samples:
        """`count` samples at equal distances, or all where there are fewer: files may be sorted."""
        if count >= len(self):
            return self
        chosen = np.arange(count) * len(self) // count
        labels = None if self.labels is None else self.labels[chosen]
        return Samples(tuple(array[chosen] for array in self.inputs), labels, self.origin)


def read_samples(spec: str, source: SourceModel, most: int) -> Samples:
    """Read at most `most` samples.

    Raises InputError for a file or function that cannot be had, and for samples that are none, not
    of the inputs' dtypes and shapes, not finite, or all of one value.
    """
    if ".py:" in spec:
        given = user_function(spec, "data")()
    else:
        given = _arrays(Path(spec))
    return checked(_joined(given, spec, source, most), source)


def own_samples(source: SourceModel) -> Samples | None:
    """The calibration batches that a model brings, else its example where it has several inputs."""
    if source.drawn_examples and not source.calibration:
        return None
    if len(source.example_inputs) == 1 and source.calibration:
        joined: tuple[np.ndarray, ...] = (np.concatenate(source.calibration),)
    else:
        joined = source.example_inputs
    return Samples(joined, None, "the model's own calibration data") if joined else None


def checked(samples: Samples, source: SourceModel) -> Samples:
    """The same samples. Raises InputError naming the first thing that is wrong with them."""
    what = samples.origin
    lengths = {len(array) for array in samples.inputs}
    if samples.labels is not None:
        lengths.add(len(samples.labels))
    if len(lengths) > 1:
        counts = ", ".join(str(length) for length in sorted(lengths))
        raise InputError(f"{what}: inputs and labels hold different numbers of samples: {counts}")
    if lengths == {0}:
        raise InputError(f"{what}: there are no samples")
    rows = zip(source.input_names, source.example_inputs, samples.inputs, strict=True)
    for name, example, array in rows:
        if array.dtype != example.dtype or array.shape[1:] != example.shape[1:]:
            shape = ", ".join(str(extent) for extent in example.shape[1:])
            raise InputError(
                f"{what}: input '{name}' is {array.dtype} of shape {array.shape}; the model takes "
                f"{example.dtype} (samples, {shape})"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{what}: input '{name}' has NaN or infinity")
        real = array.dtype.kind == "f"  # integers, as of a mask or of tokens, have no range
        if real and array.size > 1 and (array == array.flat[0]).all():
            raise InputError(
                f"{what}: input '{name}' is {array.flat[0]} everywhere, and no range can be "
                "measured on that; give real samples"
            )
    return samples


def _arrays(path: Path) -> Mapping[str, Any] | np.ndarray:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise InputError(f"data file {path} does not exist") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise InputError(f"data {path} is not an intact .npz or .npy file of numbers") from None


def _joined(given: Any, spec: str, source: SourceModel, most: int) -> Samples:
    """One `Samples` of everything that was given, up to `most` samples."""
    if isinstance(given, np.ndarray | torch.Tensor | Mapping | tuple):
        return _batch(given, spec, source).spread(most)
    if not isinstance(given, Iterable):
        raise InputError(
            f"data {spec} gave a {type(given).__name__}; give an array, a dict of arrays by input "
            "name, a tuple of inputs, or batches of them"
        )
    batches: list[Samples] = []
    count = 0
    try:
        for one in given:
            batches.append(_batch(one, spec, source))
            count += len(batches[-1])
            if count >= most:
                break
    except InputError:
        raise
    except Exception as error:  # the user's generator runs here
        raise InputError(f"data {spec} raised {reason(error)}") from error
    if not batches:
        raise InputError(f"data {spec}: there are no samples")
    labelled = [batch.labels for batch in batches if batch.labels is not None]
    try:
        columns = zip(*(batch.inputs for batch in batches), strict=True)
        inputs = tuple(np.concatenate(arrays) for arrays in columns)
        labels = np.concatenate(labelled) if len(labelled) == len(batches) else None
    except ValueError as error:
        raise InputError(f"data {spec}: batches do not fit together: {error}") from error
    few = slice(0, most)  # and no more than these were asked for
    labels = None if labels is None else labels[few]
    return Samples(tuple(array[few] for array in inputs), labels, f"data {spec}")


def _batch(given: Any, spec: str, source: SourceModel) -> Samples:
    names = source.input_names
    what = f"data {spec}"
    if isinstance(given, np.ndarray | torch.Tensor):
        given = (given,)
    if isinstance(given, Mapping):
        given = _by_name(given, names, what)
    if not isinstance(given, Sequence) or len(given) not in (len(names), len(names) + 1):
        found = f"{len(given)} arrays" if isinstance(given, Sequence) else type(given).__name__
        raise InputError(
            f"{what}: got {found} for the {len(names)} input{'s'[: len(names) > 1]} "
            f"{', '.join(names)}, to which labels may be added"
        )
    arrays = [_array(one, what) for one in given]
    labels = arrays[len(names)] if len(arrays) > len(names) else None
    return Samples(tuple(arrays[: len(names)]), labels, what)


def _by_name(given: Mapping[str, Any], names: Sequence[str], what: str) -> tuple[Any, ...]:
    """The inputs in order, then labels if there are some; a golden is passed over."""
    own = {alias: name for name in names for alias in _aliases(name)}
    labels = tuple(given[name] for name in LABELS if name in given and name not in own)[:1]
    arrays = {
        own.get(name, name): value
        for name, value in given.items()
        if name in own or not (name in LABELS or name.startswith(PASSED_OVER))
    }
    if len(names) == 1 and len(arrays) == 1:
        return (*arrays.values(), *labels)
    if set(arrays) != set(names):
        raise InputError(
            f"{what} has {', '.join(given) or 'nothing'}; the model's inputs are "
            f"{', '.join(names)}, and labels are called {LABELS[0]}"
        )
    return (*(arrays[name] for name in names), *labels)


def _aliases(name: str) -> tuple[str, ...]:
    """What an array for an input may be called in a file, as `accelsim verify --input` takes it."""
    plain = re.sub(r"\W", "_", name)
    return (name, plain, f"in_{name}", f"in_{plain}")


def _array(value: Any, what: str) -> np.ndarray:
    array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
    if not isinstance(array, np.ndarray) or array.ndim == 0 or array.dtype.kind not in "fiub":
        found = (
            f"{array.dtype} of shape {array.shape}"
            if isinstance(array, np.ndarray)
            else type(value).__name__
        )
        raise InputError(f"{what} holds {found}; arrays of numbers (samples, …) are due")
    return np.ascontiguousarray(array)
