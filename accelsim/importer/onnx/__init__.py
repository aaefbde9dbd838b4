"""`.onnx` file → `SourceModel`, whose `float_module` is an `OnnxModel`.

What comes in: a path. What goes out: a checked graph, see `importer.onnx.model`. It must not know
how the graph becomes a QDQ module.

A quantized file (QDQ or QOperator) is taken as it is, `already_quantized`. A float one becomes a
module of PyTorch, which is calibrated and quantized like a user's own. Malformed files end in
one ModelError: truncated or foreign data, unknown opsets, operators and domains, control flow,
cycles, tensors of two origins or none, announced sizes that the file does not have, numbers of
other than 8 bits. External data must lie beside the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.onnx.model import OnnxModel, OnnxNode, OnnxValue, proto_of
from accelsim.importer.onnx.reader import parse_onnx, read_onnx

__all__ = [
    "OnnxModel",
    "OnnxNode",
    "OnnxValue",
    "is_quantized",
    "load_onnx",
    "parse_onnx",
    "proto_of",
    "read_onnx",
]

_QUANTIZED = {"QuantizeLinear", "DynamicQuantizeLinear", "QGemm", "ConvInteger", "MatMulInteger"}


def is_quantized(model: OnnxModel) -> bool:
    """Whether any of its operators works on quantized numbers."""
    names = {node.operator for node in model.nodes}
    return bool(names & _QUANTIZED) or any(name.startswith("QLinear") for name in names)


def load_onnx(path: Path, name: str) -> SourceModel:
    """Read a file. Example inputs are random numbers of a fixed seed.

    Raises:
        ModelError: missing, malformed or unsupported.
        ToolError: the package onnx is not installed.
    """
    if not path.is_file():
        raise ModelError(f"model file {path} does not exist")
    model = read_onnx(path)
    rng = np.random.default_rng(0)
    quantized = is_quantized(model)
    return SourceModel(
        name=name,
        float_module=model if quantized else _float_module(model),
        example_inputs=tuple(_example(value, rng) for value in model.inputs),
        input_names=tuple(value.name for value in model.inputs),
        already_quantized=quantized,
        framework="onnx" if quantized else "torch",
        drawn_examples=True,
    )


def _float_module(model: OnnxModel) -> Any:
    from accelsim.importer.floats import from_onnx

    return from_onnx(model)


def _example(value: OnnxValue, rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers, full-range 8-bit integers, or 0 and 1 of wider types."""
    dtype = np.dtype(value.dtype)
    if dtype.kind == "f":
        return rng.standard_normal(value.shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, value.shape).astype(dtype)
    return rng.integers(0, 2, value.shape).astype(dtype)
