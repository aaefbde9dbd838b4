"""Bilinear resizes: every output is a weighted sum of four pixels, rounded once."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import Requantize, Resize2d
from accelsim.legalize.bilinear import exact_interpolation, tflite_interpolation
from accelsim.legalize.expressions import Arguments, output, output_shape, requantized
from accelsim.legalize.frame import Frame, Leaf, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.multipliers import count_end, mean_end
from accelsim.legalize.operators import Operator
from accelsim.quantize.layouts import image_layout

MOST_TOTAL = 4080  # 16 passes of weights up to 255
MOST_PHASES = 1024  # sets of weights, each with instructions of its own


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A resize2d by the method "linear"."""
    attrs = node.value.attrs
    if str(attrs.method) != "linear":
        return None
    leaf = leaf_of(frame, node.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    layout = image_layout(node.value)
    if layout not in ("nchw", "nhwc") or (leaf.layout, frame.layout) != (layout, layout):
        return Rejection(f"its layout is {layout.upper()}, and its tensor's {leaf.layout.upper()}")
    find = tflite_interpolation if frame.rounding == "tflite" else exact_interpolation
    mode = str(attrs.coordinate_transformation_mode)
    axes = (layout.index("h"), layout.index("w"))
    rows, columns = (find(leaf.shape[axis], node.shape[axis], mode) for axis in axes)
    if isinstance(rows, str):
        return Rejection(rows)
    if isinstance(columns, str):
        return Rejection(columns)
    total = rows.total * columns.total
    if total > MOST_TOTAL:
        return Rejection(
            f"its weights are multiples of 1/{total}, the finest on the NPU are 1/{MOST_TOTAL}"
        )
    phases = len(np.unique(rows.weight, axis=0)) * len(np.unique(columns.weight, axis=0))
    if phases > MOST_PHASES:
        return Rejection(f"its pixels have {phases} sets of weights, more than {MOST_PHASES}")
    zero_point, end = _end(frame, leaf, total)
    if isinstance(end, str):
        return Rejection(end)
    return operator_of(frame, "resize_bilinear", (leaf,), Resize2d(rows, columns, zero_point, end))


def _end(frame: Frame, leaf: Leaf, total: int) -> tuple[int, Requantize | str]:
    """What is subtracted from inputs, and how their weighted sum is divided.

    Where levels stay the same, PyTorch rounds the mean of stored integers half to even, TFLite half
    away from zero: the zero point decides nothing. ONNX Runtime resizes real numbers.
    """
    source, target = leaf.quantization, frame.quantization
    same = source.same_levels(target)
    if frame.rounding == "tflite" and not same:
        return 0, "its result is quantized to another scale than its input"
    subtracted, added = source.int8_zero_point, target.int8_zero_point
    if same and frame.rounding != "onnxruntime":
        subtracted = added = -target.shift
    end = Requantize(np.ones(1, np.float32), added, *frame.int8_limits)
    if frame.rounding == "tflite":
        return subtracted, count_end(total, end)
    return subtracted, mean_end(frame.rounding, source.scale, target.scale, total, end)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Four products of gathered pixels and whole weights, requantized."""
    (x,) = arguments.activations
    values = arguments.values
    _, height, width, _ = x.shape

    def along(line: Any, place: Any, tap: int, size: int) -> tuple[Any, Any]:
        """A pixel's place on one axis and its weight."""
        at = tirx.min(line.first(place) + tap, tirx.const(size - 1, "int32"))
        return at, line.weight(place, tap)

    def total(image: Any, row: Any, column: Any, channel: Any) -> Any:
        terms = []
        for tap_h, tap_w in product((0, 1), repeat=2):
            i, weight_h = along(values.rows, row, tap_h, height)
            j, weight_w = along(values.columns, column, tap_w, width)
            centred = x(image, i, j, channel).astype("int32") - values.input_zero_point
            terms.append(centred * weight_h * weight_w)
        return terms[0] + terms[1] + terms[2] + terms[3]

    sums = te.compute(output_shape(op), total, name="sums")
    return output(op, lambda *index: requantized(sums(*index), values.requantize, index[3]), op.op)


OPERATOR = Operator(
    ops=("resize_bilinear",),
    starts=("relax.image.resize2d",),
    compute=Resize2d,
    read=read,
    expression=expression,
)
