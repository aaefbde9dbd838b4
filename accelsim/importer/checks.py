"""What every source model must satisfy.

What comes in: example inputs and a `SourceModel` from any importer. What goes out: numpy arrays, or
a sentence about what is wrong. It must not know where the model came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import FRAMEWORKS, SourceModel
from accelsim.errors import InputError, ModelError

DTYPES = ("float32", "int8", "uint8", "int32", "int64")  # of a model's inputs


def input_arrays(values: Any, name: str) -> tuple[np.ndarray[Any, Any], ...]:
    """One tensor or array, or a sequence of them, as arrays of the dtypes in `DTYPES`.

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
        if array.dtype not in DTYPES:
            raise ModelError(f"input {position} of {name} is {array.dtype}; {one_of_dtypes()}")
        arrays.append(np.ascontiguousarray(array))
    if not arrays:
        raise ModelError(f"model {name} has no inputs")
    return tuple(arrays)


def one_of_dtypes() -> str:
    """What the dtype of an input may be, for messages."""
    return f"{', '.join(DTYPES[:-1])} and {DTYPES[-1]} are supported"


def check_source(source: SourceModel) -> None:
    """Check a model before anything runs on it.

    A file of another framework than PyTorch may bring no example inputs.

    Raises:
        ModelError: parameters of an unsupported dtype or that are no numbers, or inputs of one.
        InputError: empty or non-finite example inputs, or calibration and test data that do not fit
            to the example.
    """
    _check_kinds(source)
    foreign = source.framework != "torch"
    if foreign and not source.example_inputs:
        _check_test_split(source, None)
        return
    input_arrays(source.example_inputs, source.name)
    expected = torch.export.ExportedProgram if source.already_quantized else torch.nn.Module
    if not foreign and not isinstance(source.float_module, expected):
        raise ModelError(
            f"model {source.name} holds a {type(source.float_module).__name__}; a "
            f"{expected.__name__} is needed"
        )
    if len(source.input_names) != len(source.example_inputs):
        raise ModelError(
            f"model {source.name} names {len(source.input_names)} inputs and gives "
            f"{len(source.example_inputs)}"
        )
    if not source.already_quantized and not foreign:
        for parameter, tensor in source.float_module.named_parameters():
            if tensor.dtype != torch.float32:
                kind = str(tensor.dtype).removeprefix("torch.")
                raise ModelError(
                    f"parameter '{parameter}' of {source.name} is {kind}; convert the model to "
                    "float32"
                )
        check_parameters(source.float_module, source.name)
    for name, array in zip(source.input_names, source.example_inputs, strict=True):
        what = _unusable(array)
        if what:
            raise InputError(f"input '{name}' of {source.name} {what}")
    example = source.example_inputs[0]
    for number, batch in enumerate(source.calibration):
        _check_samples(batch, f"calibration batch {number} of {source.name}", example)
        if batch.size == 0:
            raise InputError(f"calibration batch {number} of {source.name} is empty")
    _check_test_split(source, example)


def check_parameters(module: torch.nn.Module, model: str) -> None:
    """Raises ModelError naming a parameter that has NaN or infinity, or a buffer that has NaN.

    A buffer may be infinite: masks are.
    """
    masks = {name for name, _ in module.named_buffers()}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        wrong = torch.isnan(tensor) if name in masks else ~torch.isfinite(tensor)
        if bool(wrong.any()):
            raise ModelError(
                f"'{name}' of model {model} has NaN or infinity; train it again or load other "
                "weights"
            )


def _unusable(array: np.ndarray) -> str:
    """What is wrong with an example input; empty where nothing is."""
    if array.ndim == 0:
        return "is a scalar; the first axis of an input counts samples"
    if array.size == 0:
        return f"is empty: its shape is {array.shape}"
    return "" if np.isfinite(array).all() else "has NaN or infinity"


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
    if source.framework not in FRAMEWORKS:
        raise ModelError(
            f"framework of {name} is {source.framework!r:.60}; use one of {', '.join(FRAMEWORKS)}"
        )
    if not isinstance(source.already_quantized, bool):
        raise ModelError(f"already_quantized of {name} must be True or False")
    for field in ("example_inputs", "calibration"):
        values = getattr(source, field)
        kind = ModelError if field == "example_inputs" else InputError
        if not isinstance(values, (tuple, list)):
            raise kind(f"{field} of {name} is a {type(values).__name__}; give a tuple of arrays")


def _check_samples(values: object, what: str, example: np.ndarray[Any, Any]) -> None:
    """`values` are finite samples of the dtype and, but for their number, shape of `example`."""
    sample = example.shape[1:]
    finite = "finite " if example.dtype.kind == "f" else ""
    wanted = f"{finite}{example.dtype} (samples, {', '.join(str(extent) for extent in sample)})"
    if not isinstance(values, np.ndarray):
        raise InputError(f"{what} must be {wanted}, not a {type(values).__name__}")
    fits = values.dtype == example.dtype and values.ndim > 0 and values.shape[1:] == sample
    if not fits or not np.isfinite(values).all():
        raise InputError(f"{what}: {values.dtype} of shape {values.shape}; they must be {wanted}")


def _check_test_split(source: SourceModel, example: np.ndarray[Any, Any] | None) -> None:
    inputs, labels = source.test_inputs, source.test_labels
    if inputs is None:
        if labels is not None:
            raise InputError(f"model {source.name} has test labels and no test inputs")
        return
    if example is None:
        raise InputError(f"model {source.name} has test inputs and no example input")
    _check_samples(inputs, f"test inputs of {source.name}", example)
    batch = next(iter(example.shape), 1)
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
    fits = labels.shape[:1] == (len(inputs),) if source.metric else labels.shape == (len(inputs),)
    if not fits:
        raise InputError(
            f"test labels of {source.name} have shape {labels.shape} for {len(inputs)} test inputs"
        )
