"""A quantized network as a file that other tools read.

What comes in: a `QuantizedModel`. What goes out: a `.pt2` of torch.export with quantized_decomposed
operators, or an ONNX file in QDQ form. It must not know the hardware.

Both hold the network that accelsim verified, integers, scales, zero points, limits and the user's
names of layers: reading either back gives the same layers with the same integers.
"""

from __future__ import annotations

from accelsim.quantize.export.onnx_file import export_onnx
from accelsim.quantize.export.program_file import export_pt2

__all__ = ["export_onnx", "export_pt2"]
