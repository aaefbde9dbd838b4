"""A model as its user gave it, and quantized: importer → quantize → legalize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

FRAMEWORKS = ("torch", "onnx", "tflite")


class ForeignModel(Protocol):
    """A model file of another framework than PyTorch, parsed by its importer."""

    @property
    def data(self) -> bytes:
        """The file as it was read; a run folder keeps it, and its framework runs it."""


@dataclass(frozen=True, slots=True)
class Training:
    """What a float model was trained on, for a short training after a change of its layers."""

    inputs: np.ndarray  # (samples, ...)
    wanted: np.ndarray  # (samples, ...), what `loss` compares outputs with
    loss: Callable[[Any, Any], Any]  # of tensors: outputs and wanted of a batch → a scalar
    shift_pixels: int = 0  # images are shifted at random by up to so many


@dataclass(frozen=True, slots=True)
class SourceModel:
    """A model as its user gave it, with the data that quantization and accuracy need."""

    name: str  # as given on the command line: "zoo:digits-resnet", "net.pt2", "file.py:make"
    float_module: Any  # torch.nn.Module in eval mode, or the `ForeignModel` of another framework
    example_inputs: tuple[np.ndarray, ...]  # one batch, in the model's own layout and dtype
    input_names: tuple[str, ...]
    calibration: tuple[np.ndarray, ...] = ()  # batches for post-training quantization
    test_inputs: np.ndarray | None = None  # (samples, ...) in the model's own layout
    test_labels: np.ndarray | None = None  # (samples,) integer class labels
    already_quantized: bool = False  # a QDQ `.pt2`, or a quantized foreign file: skip calibration
    # The task's figures of merit by name, from float outputs (samples, ...) and `test_labels`;
    # top-1 and top-5 of class scores where there is none.
    metric: Callable[[np.ndarray, np.ndarray], Mapping[str, float]] | None = None
    framework: str = "torch"  # one of FRAMEWORKS: whose file it is
    # Layers of a float model that stay in float: the user's names of layers or of modules that hold
    # them ("block2"), or types ("Linear").
    keep_float: tuple[str, ...] = ()
    drawn_examples: bool = False  # example inputs are random numbers: nothing to calibrate with
    training: Training | None = None


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """The quantized network in the forms that the rest needs.

    `qdq` is the living definition of the arithmetic: compiler and reference both start from it.
    Every call in it carries a `relax` span whose source name is the user's layer name.
    """

    name: str
    exported: (
        Any  # torch.export.ExportedProgram, quantized_decomposed q/dq around float ops, or None
    )
    qdq: Any  # tvm.IRModule, relax.quantize/dequantize around float ops, integer weights
    torch_int8: Any | None  # convert_fx GraphModule for the qnnpack engine: the bit-exact golden
    layer_names: tuple[str, ...]  # in execution order, unique
    input_names: tuple[str, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    input_dtypes: tuple[str, ...]
    # Whose rounding the integer definition follows, for compiler and reference alike: "qnnpack" for
    # models whose golden is PyTorch's qnnpack engine, "tflite" for TFLite's reference kernels,
    # "onnxruntime" for its QLinear operators, "fp32" for float32 operations one by one.
    rounding: str = "fp32"
    framework: str = "torch"  # one of FRAMEWORKS: whose golden it is compared with
    original: ForeignModel | None = None  # the file of a framework that is not PyTorch
    output_names: tuple[str, ...] = ()  # the file's own; empty where it names none
    # Layers that were left out of quantization → who excluded them; they run on the host.
    excluded: Mapping[str, str] = field(default_factory=dict)
