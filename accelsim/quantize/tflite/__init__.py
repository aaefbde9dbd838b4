"""A parsed `.tflite` file → the QDQ module that compiler and reference start from.

What comes in: a `SourceModel` with a `TfliteModel`. What goes out: a `QuantizedModel`. It must not
know the hardware, or how LiteRT rounds.

Every operator is one layer, named after its first output, with the file's own tensors around it:
dequantize, the Relax operator in NHWC, its fused activation, quantize. Inputs and outputs of the
model keep the file's dtype. A float tensor has neither dequantize nor quantize, so that an operator
on floats is part of the layer that ends in the next quantized tensor.
"""

from __future__ import annotations

from accelsim.quantize.tflite.pipeline import quantize_tflite

__all__ = ["quantize_tflite"]
