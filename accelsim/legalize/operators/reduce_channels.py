"""Means and sums over channels, perhaps over height and width too: convolutions with ones."""

from __future__ import annotations

from math import prod

import numpy as np

from accelsim.artifacts import Conv2d, Requantize
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.multipliers import mean_end, sum_end
from accelsim.legalize.operators import Operator
from accelsim.legalize.operators.convolution import LARGEST_KERNEL, expression

_STARTS = ("relax.mean", "relax.sum")


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A mean or sum whose axes include the channels."""
    if node.op not in _STARTS:
        return None
    leaf = leaf_of(frame, node.args[0])
    if leaf is None or not leaf.layout:
        return None
    rank, axis = len(leaf.shape), node.value.attrs.axis
    axes = range(rank) if axis is None else [int(value) % rank for value in axis]
    letters = {leaf.layout[one] for one in axes}
    if "c" not in letters:
        return None
    if "n" in letters:
        return Rejection("it reduces over images, which the NPU does not")
    n, height, width, c = nhwc(leaf.shape, leaf.layout)
    kernel = (height if "h" in letters else 1, width if "w" in letters else 1)
    if max(kernel) > LARGEST_KERNEL:
        return Rejection(f"its window of {kernel[0]}×{kernel[1]} exceeds {LARGEST_KERNEL}")
    result = (n, height // kernel[0], width // kernel[1], 1)
    if frame.layout and nhwc(frame.shape, frame.layout) != result:
        return Rejection(f"its result of shape {frame.shape} lies otherwise than its windows")
    source, target = leaf.quantization, frame.quantization
    end = Requantize(np.ones(1, np.float32), target.int8_zero_point, *frame.int8_limits)
    derive = mean_end if node.op == "relax.mean" else sum_end
    requantize = derive(frame.rounding, source.scale, target.scale, c * prod(kernel), end)
    if isinstance(requantize, str):
        return Rejection(requantize)
    compute = Conv2d(
        weight=np.ones((1, *kernel, c), np.int8),
        bias=np.zeros(1, np.int32),
        input_zero_point=source.int8_zero_point,
        weight_zero_point=0,
        requantize=requantize,
        stride=kernel,
    )
    return operator_of(frame, "reduce_channels", (leaf,), compute)


OPERATOR = Operator(
    ops=("reduce_channels",),
    starts=_STARTS,
    compute=Conv2d,
    read=read,
    expression=expression,
)
