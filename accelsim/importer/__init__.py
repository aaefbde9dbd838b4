"""Model file → `SourceModel`.

What comes in: what the user typed. What goes out: a float module (or an already quantized program)
in eval mode with example inputs. It must not know how the model is quantized.

Three forms are understood:

* `zoo:NAME`, a model that accelsim trains itself (`accelsim.zoo`).
* `PATH.pt2`, written by `torch.export.save`. A float program is calibrated with the example inputs
  stored in it. A program that already holds quantized_decomposed quantize and dequantize operators
  is taken as it is.
* `PATH.py:FUNCTION`. The file is executed and the function called without arguments. It returns one
  of
    - `(module, inputs)`: a `torch.nn.Module`, and one tensor or array, or a tuple of them, for its
      forward. They fix the shapes, and calibrate the model.
    - an `accelsim.artifacts.SourceModel`, which may add calibration batches, a test split and
      labels.
    - a `torch.export.ExportedProgram`, treated as a `.pt2`.

Inputs are float32 with fixed shapes. Everything else ends in one ModelError or InputError.
"""

from __future__ import annotations

from pathlib import Path

from accelsim import zoo
from accelsim.artifacts import SourceModel
from accelsim.errors import InputError

__all__ = ["load_model"]


def load_model(spec: str, seed: int = 0, cache: Path | None = None) -> SourceModel:
    """Load a model.

    Args:
        spec: `zoo:NAME`, `PATH.pt2` or `PATH.py:FUNCTION`.
        seed: seeds the training of zoo models.
        cache: directory of cached weights; the zoo's default when None.

    Raises:
        InputError: `spec` has none of the three forms, or names no model of the zoo.
        ModelError: the file or function is missing, broken or unsupported.
    """
    if spec.startswith("zoo:"):
        return zoo.load(spec, seed, cache)
    if spec.endswith(".pt2"):
        from accelsim.importer.exported import load_pt2

        return load_pt2(Path(spec), spec)
    path, separator, function = spec.rpartition(":")
    if separator and path.endswith(".py"):
        from accelsim.importer.script import load_script

        return load_script(Path(path), function, spec)
    raise InputError(f"model '{spec}' is not one of zoo:NAME, FILE.pt2 and FILE.py:FUNCTION")
