"""Tensor expressions where the host meets the NPU: quantization, and shifts of uint8 to int8.

What comes in: a placeholder. What goes out: a tensor expression. It must not know operators.
"""

from __future__ import annotations

from typing import Any

from tvm import te, tirx


def shift_to_int8(x: Any) -> Any:
    """uint8 to int8 by subtracting 128, at the boundary to the host."""
    return te.compute(
        x.shape, lambda *index: (x(*index).astype("int16") - 128).astype("int8"), name="to_int8"
    )


def shift_to_uint8(x: Any) -> Any:
    """int8 to uint8 by adding 128, at the boundary to the host."""
    return te.compute(
        x.shape, lambda *index: (x(*index).astype("int16") + 128).astype("uint8"), name="to_uint8"
    )


def quantized(x: Any, factor: Any, divides: bool, zero_point: int, dtype: str) -> Any:
    """rint(x · factor) + zero_point, or rint(x / factor) + zero_point, saturated.

    PyTorch multiplies by the float32 inverse of a scale, ONNX Runtime and relax divide by it. The
    factor is a tensor without axes: TVM would multiply by the inverse of a number.
    """
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)

    def element(*index: Any) -> Any:
        value = x(*index)
        steps = tirx.nearbyint(value / factor() if divides else value * factor())
        lowest, highest = (
            tirx.const(float(limit - zero_point), "float32") for limit in (low, high)
        )
        bounded = tirx.max(tirx.min(steps, highest), lowest).astype("int32")
        return (bounded + zero_point).astype(dtype)

    return te.compute(x.shape, element, name="quantize")
