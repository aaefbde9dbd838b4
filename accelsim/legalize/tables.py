"""Results of a function in steps of the output, as the framework whose rounding counts has them.

What comes in: 256 float32 results and the chain of operators behind them. What goes out: 256 whole
steps with the output's zero point added, before limits, int8 domain. It must not know Relax.

    fp32, qnnpack  rint(result · (1 / scale)); qnnpack's kernel of hard-swish has an order of its
                   own: rint(x · min(max(x + 3, 0), 6) / 6 · (1 / scale) + zero_point)
    onnxruntime    rint(result / scale)
    tflite         result · (1 / scale), half away from zero, of the functions that TFLite computes
                   in float32; or integers throughout, see `legalize.tflite_functions`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelsim.artifacts import F32
from accelsim.legalize.functions import Results
from accelsim.legalize.integer_op import Quantization
from accelsim.legalize.tflite_functions import FIXED_POINT, FLOATS

FARTHEST = 2.0**20
_QUINT8 = 128  # from a zero point of the int8 domain to that of a quint8 tensor


def result_steps(found: Results, target: Quantization, rounding: str) -> Any | None:
    """(256,) int64; None where the framework has no such function, or one that is not known."""
    if rounding == "tflite":
        return _tflite_steps(found, target)
    with np.errstate(over="ignore"):
        if rounding == "onnxruntime":  # which divides where PyTorch multiplies
            return _whole(np.rint(found.reals / target.scale)) + target.int8_zero_point
        inverse = np.float32(1) / target.scale
        if rounding == "qnnpack" and found.function == "hard_swish":
            x, zero_point = _inputs(found), np.float32(target.int8_zero_point + _QUINT8)
            gate = np.minimum(np.maximum(x + np.float32(3), np.float32(0)), np.float32(6))
            steps = inverse * (x * gate / np.float32(6)) + zero_point
            return _whole(np.rint(steps)) - _QUINT8
        return _whole(np.rint(found.reals * inverse)) + target.int8_zero_point


def _tflite_steps(found: Results, target: Quantization) -> Any | None:
    name, source = found.function, found.leaf.quantization
    if name in FIXED_POINT:
        centred = np.arange(-128, 128, dtype=np.int64) - source.int8_zero_point
        attributes = found.chain[0][1][1:] if len(found.chain) == 1 else ()
        steps = FIXED_POINT[name](centred, source.scale, target.scale, *attributes)
    elif name in FLOATS:
        with np.errstate(over="ignore"):
            real = FLOATS[name](_inputs(found)) * (np.float32(1) / target.scale)
        steps = _whole(np.copysign(np.floor(np.abs(real.astype(np.float64)) + 0.5), real))
    else:
        return None
    return None if steps is None else steps + target.int8_zero_point


def _inputs(found: Results) -> F32:
    """The 256 values that the function is given."""
    source = found.leaf.quantization
    centred = np.arange(-128, 128) - source.int8_zero_point
    return np.asarray(centred.astype(np.float32) * source.scale, np.float32)


def _whole(steps: Any) -> Any:
    """Whole numbers far beyond every limit at most."""
    return np.clip(steps, -FARTHEST, FARTHEST).astype(np.int64)
