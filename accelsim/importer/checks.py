"""What every source model must satisfy.

What comes in: example inputs and a `SourceModel` from any importer. What goes out: numpy arrays, or
a sentence about what is wrong. It must not know where the model came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError, ModelError


def input_arrays(values: Any, name: str) -> tuple[np.ndarray[Any, Any], ...]:
    """One tensor or array, or a sequence of them, as float32 arrays.

    Raises:
        ModelError: something else, or another dtype.
    """
    items: Sequence[Any] = values if isinstance(values, (tuple, list)) else (values,)
    arrays = []
    for position, item in enumerate(items):
        array = item.detach().numpy() if isinstance(item, torch.Tensor) else item
        if not isinstance(array, np.ndarray):
            raise ModelError(
                f"input {position} of {name} is a {type(item).__name__}; only tensors and arrays "
                "are supported"
            )
        if array.dtype != np.float32:
            raise ModelError(
                f"input {position} of {name} is {array.dtype}; only float32 is supported"
            )
        arrays.append(np.ascontiguousarray(array))
    if not arrays:
        raise ModelError(f"model {name} has no inputs")
    return tuple(arrays)


def check_source(source: SourceModel) -> None:
    """Check a model before anything runs on it.

    Raises:
        ModelError: parameters of an unsupported dtype, or inputs that are not float32 arrays.
        InputError: empty or non-finite example inputs, or calibration and test data that do not fit
            to the example.
    """
    _check_kinds(source)
    input_arrays(source.example_inputs, source.name)
    expected = torch.export.ExportedProgram if source.already_quantized else torch.nn.Module
    if not isinstance(source.float_module, expected):
        raise ModelError(
            f"model {source.name} holds a {type(source.float_module).__name__}; a "
            f"{expected.__name__} is needed"
        )
    if len(source.input_names) != len(source.example_inputs):
        raise ModelError(
            f"model {source.name} names {len(source.input_names)} inputs and gives "
            f"{len(source.example_inputs)}"
        )
    if not source.already_quantized:
        for parameter, tensor in source.float_module.named_parameters():
            if tensor.dtype != torch.float32:
                kind = str(tensor.dtype).removeprefix("torch.")
                raise ModelError(
                    f"parameter '{parameter}' of {source.name} is {kind}; convert the model to "
                    "float32"
                )
    for name, array in zip(source.input_names, source.example_inputs, strict=True):
        if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
            raise InputError(
                f"input '{name}' of {source.name} is a scalar, empty or has NaN or infinity"
            )
    sample = source.example_inputs[0].shape[1:]
    for number, batch in enumerate(source.calibration):
        _check_samples(batch, f"calibration batch {number} of {source.name}", sample)
        if batch.size == 0:
            raise InputError(f"calibration batch {number} of {source.name} is empty")
    _check_test_split(source, sample)


def _check_kinds(source: SourceModel) -> None:
    """That every field holds what its type says, as far as it is looked into later.

    Raises:
        ModelError: names, example inputs or a flag of another kind.
        InputError: calibration data that is no tuple of arrays.
    """
    name = source.name
    names = source.input_names
    if not isinstance(names, (tuple, list)) or not all(isinstance(one, str) for one in names):
        raise ModelError(f"input_names of {name} must be a tuple of texts, not {names!r:.60}")
    if len(set(names)) != len(names):
        raise ModelError(f"input_names of {name} hold one name twice")
    if not isinstance(source.already_quantized, bool):
        raise ModelError(f"already_quantized of {name} must be True or False")
    for field in ("example_inputs", "calibration"):
        values = getattr(source, field)
        kind = ModelError if field == "example_inputs" else InputError
        if not isinstance(values, (tuple, list)):
            raise kind(f"{field} of {name} is a {type(values).__name__}; give a tuple of arrays")


def _check_samples(values: object, what: str, sample: tuple[int, ...]) -> None:
    """`values` are finite float32 samples of the shape `sample`."""
    wanted = f"finite float32 (samples, {', '.join(str(extent) for extent in sample)})"
    if not isinstance(values, np.ndarray):
        raise InputError(f"{what} must be {wanted}, not a {type(values).__name__}")
    fits = values.dtype == np.float32 and values.ndim > 0 and values.shape[1:] == sample
    if not fits or not np.isfinite(values).all():
        raise InputError(f"{what}: {values.dtype} of shape {values.shape}; they must be {wanted}")


def _check_test_split(source: SourceModel, sample: tuple[int, ...]) -> None:
    inputs, labels = source.test_inputs, source.test_labels
    if inputs is None:
        if labels is not None:
            raise InputError(f"model {source.name} has test labels and no test inputs")
        return
    _check_samples(inputs, f"test inputs of {source.name}", sample)
    batch = next(iter(source.example_inputs[0].shape), 1)
    if len(inputs) < batch:
        raise InputError(
            f"model {source.name} has {len(inputs)} test inputs and its batch is {batch}: give "
            "a batch at least, or none"
        )
    if labels is None:
        return
    if not isinstance(labels, np.ndarray) or not np.issubdtype(labels.dtype, np.integer):
        found = labels.dtype if isinstance(labels, np.ndarray) else f"a {type(labels).__name__}"
        raise InputError(f"test labels of {source.name} are {found}; an array of integers is due")
    if labels.shape != (len(inputs),):
        raise InputError(
            f"test labels of {source.name} have shape {labels.shape} for {len(inputs)} test inputs"
        )
