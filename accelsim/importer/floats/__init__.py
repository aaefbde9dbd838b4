"""Float ONNX and TensorFlow Lite graphs → modules of PyTorch.

What comes in: a checked `OnnxModel` or `TfliteModel` without quantization. What goes out: an
`fx.GraphModule` that computes the same, with weights in `torch.nn` modules, for FX quantization to
calibrate. Its layers have the file's names. It must not know how they are quantized.

Each framework has modules of its operators in a folder; an operator that none of them has is
refused by name.
"""

from __future__ import annotations

from accelsim.importer.floats.onnx_graph import from_onnx
from accelsim.importer.floats.tflite_graph import from_tflite

__all__ = ["from_onnx", "from_tflite"]
