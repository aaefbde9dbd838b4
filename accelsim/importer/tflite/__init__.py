"""A `.tflite` file → `SourceModel`.

What comes in: a path. What goes out: a model that is already quantized, as `TfliteModel`, or a
float one as a module of PyTorch. It must not know how it becomes Relax.

Not everything that the format can say is read: one graph without control flow, fixed shapes, int8
and uint8 activations, no variables, no custom operators. Whatever else a file has, or however it
is damaged, ends in a ModelError of one sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.tflite.model import TfliteModel, TfliteOperator, TfliteTensor
from accelsim.importer.tflite.read import read_model

__all__ = ["TfliteModel", "TfliteOperator", "TfliteTensor", "load_tflite", "read_model"]

LARGEST_FILE_BYTES = 1 << 29


def load_tflite(path: Path, name: str) -> SourceModel:
    """Read a file.

    The example input is drawn at random, evenly over all values, the same in every run.

    Raises ModelError: missing, unreadable, damaged, or of a kind that is not supported.
    """
    model = read_model(_content(path), name)
    rng = np.random.default_rng(0)
    examples = tuple(_example(rng, model, index) for index in model.inputs)
    return SourceModel(
        name=name,
        float_module=model if model.quantized else _float_module(model),
        example_inputs=examples,
        input_names=model.input_names,
        already_quantized=model.quantized,
        framework="tflite" if model.quantized else "torch",
        drawn_examples=True,
    )


def _float_module(model: TfliteModel) -> Any:
    from accelsim.importer.floats import from_tflite

    return from_tflite(model)


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise ModelError(f"model file {path} does not exist")
    size = path.stat().st_size
    if size > LARGEST_FILE_BYTES:
        raise ModelError(
            f"model file {path} has {size:,} bytes, the limit is {LARGEST_FILE_BYTES:,}"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model file {path}: {error.strerror}") from None


def _example(rng: np.random.Generator, model: TfliteModel, index: int) -> np.ndarray:
    """Values of an input: any of its type, or of a normal distribution."""
    tensor = model.tensors[index]
    if tensor.dtype == "float32":
        return rng.standard_normal(tensor.shape).astype(np.float32)
    if tensor.dtype in ("int8", "uint8"):
        limits = np.iinfo(tensor.dtype)
        return rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
    return np.zeros(tensor.shape, tensor.dtype)
