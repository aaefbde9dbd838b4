"""Model file → `SourceModel`.

What comes in: what the user typed. What goes out: a float module (or an already quantized program)
in eval mode with example inputs. It must not know how the model is quantized.

These forms are understood:

* `zoo:NAME`, a model that accelsim trains itself (`accelsim.zoo`).
* `PATH.pt2`, written by `torch.export.save`. A float program is calibrated with the example inputs
  stored in it. A program that already holds quantized_decomposed quantize and dequantize operators
  is taken as it is.
* `PATH.py:FUNCTION`. The file is executed and the function called without arguments. It returns one
  of
    - `(module, inputs)`: a `torch.nn.Module`, and one tensor or array, or a tuple of them, for its
      forward. They fix the shapes, and calibrate a float module. A module that PyTorch or torchao
      prepared or converted (FX, eager mode, PT2E) is taken as it was quantized.
    - an `accelsim.artifacts.SourceModel`, which may add calibration batches, a test split and
      labels.
    - a `torch.export.ExportedProgram`, treated as a `.pt2`.
* `PATH.tflite` and `PATH.onnx`. Of a quantized file the parsed graph takes the place of the module,
  and keeps its own tensor names, layout and dtypes. A float file becomes a module of PyTorch with
  the file's names (`floats`), to be calibrated like any other.

Inputs are of the dtypes in `checks.DTYPES`, with fixed shapes. Everything else ends in one
ModelError or InputError.
"""

from __future__ import annotations

from pathlib import Path

from accelsim import zoo
from accelsim.artifacts import SourceModel
from accelsim.errors import InputError

__all__ = ["load_model"]

_CONVERTER = "convert it with TensorFlow's TFLite converter and give the .tflite"
WAYS_OUT = (
    (("SavedModel",), f"a TensorFlow SavedModel: {_CONVERTER}"),
    ((".pb",), f"a frozen TensorFlow graph: {_CONVERTER}"),
    ((".h5", ".keras"), f"a Keras model: {_CONVERTER}"),
    (
        (".pt", ".pth"),
        "a PyTorch pickle or TorchScript archive: export the module with torch.export.export and "
        "torch.export.save and give the .pt2, or give FILE.py:FUNCTION",
    ),
)


def load_model(spec: str, seed: int = 0, cache: Path | None = None) -> SourceModel:
    """Load a model.

    Args:
        spec: `zoo:NAME`, `PATH.pt2`, `PATH.onnx`, `PATH.tflite` or `PATH.py:FUNCTION`.
        seed: seeds the training of zoo models.
        cache: directory of cached weights; the zoo's default when None.

    Raises:
        InputError: `spec` has none of these forms, or names no model of the zoo.
        ModelError: the file or function is missing, broken or unsupported.
    """
    if spec.startswith("zoo:"):
        return zoo.load(spec, seed, cache)
    if spec.endswith(".pt2"):
        from accelsim.importer.exported import load_pt2

        return load_pt2(Path(spec), spec)
    if spec.endswith(".tflite"):
        from accelsim.importer.tflite import load_tflite

        return load_tflite(Path(spec), spec)
    if spec.endswith(".onnx"):
        from accelsim.importer.onnx import load_onnx

        return load_onnx(Path(spec), spec)
    path, separator, function = spec.rpartition(":")
    if separator and path.endswith(".py"):
        from accelsim.importer.script import load_script

        return load_script(Path(path), function, spec)
    raise InputError(_refusal(spec))


def _refusal(spec: str) -> str:
    """What to do with a model of a form that is not understood."""
    path = Path(spec)
    kind = "SavedModel" if (path / "saved_model.pb").is_file() else path.suffix.lower()
    known = next((way for kinds, way in WAYS_OUT if kind in kinds), None)
    if known is None:
        return (
            f"model '{spec}' is not one of zoo:NAME, FILE.pt2, FILE.onnx, FILE.tflite and "
            "FILE.py:FUNCTION"
        )
    return f"model '{spec}' is {known}"
