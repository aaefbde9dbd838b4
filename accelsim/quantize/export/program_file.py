"""A quantized network as a `.pt2` of torch.export.

What comes in: a `QuantizedModel` of PyTorch. What goes out: a file. It must not know Relax.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path

from accelsim.artifacts import QuantizedModel
from accelsim.errors import ModelError
from accelsim.files import whole_file, writing


def export_pt2(quantized: QuantizedModel, path: Path) -> Path:
    """Write the exported program, layer names included.

    Raises:
        ModelError: the model came from a file of another framework and has no such program.
        InputError: the file cannot be written.
    """
    if quantized.exported is None:
        raise ModelError(
            f"model {quantized.name} came from {quantized.framework} and has no program of "
            "torch.export; write it as ONNX"
        )
    import torch

    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(quantized.exported, content)
    with writing(path), whole_file(path) as partial:
        partial.write_bytes(content.getvalue())
    return path
