"""What ONNX Runtime computes where it is not one rounding of an exact result.

What comes in: the operator that ran, its integers and levels. What goes out: its result by the
formula that its kernel follows, in float32 step by step, so that a difference from the integer
reference has a cause that was computed. It must not know the integer reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.importer.onnx import OnnxNode
from accelsim.reference.network import QuantizedTensor

Array = NDArray[Any]
F32 = np.float32
NEAR = 1e-3  # of a tie, in output steps
CAUSES = {
    "QLinearAdd": "QLinearAdd takes the zero points out of its products and adds them in float32 "
    "before it rounds half to even",
    "QLinearMul": "QLinearMul adds the zero point in float32 before it rounds half to even",
    "QLinearAveragePool": "QLinearAveragePool sums and divides float32 numbers and adds the zero "
    "point before it rounds half to even",
}
FLOATS = (
    "without graph optimisation ONNX Runtime computes it in float32, and rounds the result once "
    "more than integers do"
)
OWN = "its integers are accelsim's own, and ONNX Runtime's result is as near to the real one"


def known(node: OnnxNode, values: Mapping[str, Array], shape: Sequence[int]) -> Array | None:
    """The node's result by formula; `values` has its constants and inputs. None for others."""
    operands = [values[name] for name in node.inputs if name]
    if node.operator == "QLinearAdd":
        return _add(*operands)
    if node.operator == "QLinearMul":
        return _multiply(*operands)
    if node.operator == "QLinearAveragePool" and len(shape) == 4:
        return _average(node, operands, shape)
    return None


def compared(floats: Array, integers: Array, reals: Array, tensor: QuantizedTensor) -> str:
    """How many elements of an island's float32 form are other than its integer kernel's, and why.

    `reals` are the float32 results before the quantize. A difference of one step whose real result
    lies next to a tie is float32 rounding, anything else is not.
    """
    apart = np.abs(floats.astype(np.int16) - integers.astype(np.int16))
    wrong = apart > 0
    alone = f"alone, {int(wrong.sum()):,} of {wrong.size:,} elements differ from its integer kernel"
    before = "without graph optimisation ONNX Runtime computes it in float32: "
    if not wrong.any():
        return f"{before}alone it equals its integer kernel, what differs came with its inputs"
    steps = reals[wrong].astype(np.float64) / float(tensor.scale)
    far = float(np.abs(np.abs(steps - np.floor(steps)) - 0.5).max())
    if apart.max() == 1 and far < NEAR:
        return f"{before}{alone}, each by one step and within {far:.1g} steps of a tie"
    return f"{before}{alone}, by {int(apart.max())} at most and up to {far:.1g} steps from a tie"


def _rounded(reals: Array, like: Array) -> Array:
    limits = np.iinfo(like.dtype)
    return np.clip(np.rint(reals), limits.min, limits.max).astype(like.dtype)


def _add(*operands: Array) -> Array:
    a, sa, za, b, sb, zb, sy, zy = operands
    ra, rb = F32(sa) / F32(sy), F32(sb) / F32(sy)
    fixed = F32(zy) - (ra * F32(za) + rb * F32(zb))
    return _rounded((fixed + a.astype(F32) * ra) + b.astype(F32) * rb, zy)


def _multiply(*operands: Array) -> Array:
    a, sa, za, b, sb, zb, sy, zy = operands
    product = (a.astype(F32) - F32(za)) * (b.astype(F32) - F32(zb))
    return _rounded(product * (F32(sa) * F32(sb) / F32(sy)) + F32(zy), zy)


def _average(node: OnnxNode, operands: Sequence[Array], shape: Sequence[int]) -> Array:
    """Dequantized elements summed row by row in float32."""
    x, sx, zx, sy, zy = operands
    a = node.attributes
    kernel, strides = a["kernel_shape"], a.get("strides", (1, 1))
    top, left = a.get("pads", (0, 0, 0, 0))[:2]
    reals = F32(sx) * (x.astype(F32) - F32(zx))
    result = np.zeros(shape, F32)
    for i in range(shape[2]):
        rows = _covered(i * strides[0] - top, kernel[0], x.shape[2])
        for j in range(shape[3]):
            columns = _covered(j * strides[1] - left, kernel[1], x.shape[3])
            total = np.zeros(shape[:2], F32)
            for row in rows:
                for column in columns:
                    total = total + reals[:, :, row, column]
            counted = bool(a.get("count_include_pad", 0))
            count = kernel[0] * kernel[1] if counted else len(rows) * len(columns)
            result[:, :, i, j] = total / F32(count)
    return _rounded(result / F32(sy) + F32(zy), zy)


def _covered(start: int, kernel: int, size: int) -> range:
    return range(max(start, 0), min(start + kernel, size))
