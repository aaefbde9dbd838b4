"""A module of PyTorch → its exported program.

What comes in: a module and the `SourceModel` with its example inputs. What goes out: an
ExportedProgram. It must not know quantization.
"""

from __future__ import annotations

import warnings

import torch
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.reasons import reason


def export_program(module: nn.Module, source: SourceModel) -> torch.export.ExportedProgram:
    """Export for the shapes of the example inputs; ModelError where PyTorch cannot."""
    examples = tuple(torch.from_numpy(array) for array in source.example_inputs)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return torch.export.export(module, examples)
    except Exception as error:  # torch raises many kinds here
        raise ModelError(f"model {source.name} cannot be exported: {reason(error)}") from error
