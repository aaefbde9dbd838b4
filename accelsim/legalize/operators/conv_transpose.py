"""Transposed convolutions over one or two axes, with or without bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import I8, ConvTranspose2d
from accelsim.legalize.expressions import Arguments, output, output_shape, padded, requantized
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.weights import (
    Weight,
    core_and_bias,
    product_of,
    weight_of,
    without_groups,
)

_CORES = {
    "relax.nn.conv1d_transpose": (("NCW", "IOW"),),
    "relax.nn.conv2d_transpose": (("NCHW", "IOHW"), ("NHWC", "IOHW")),
}
LARGEST_KERNEL = 16


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A conv1d_transpose or conv2d_transpose with or without bias."""
    graph = frame.graph
    found = core_and_bias(graph, node, _CORES)
    if found is None:
        return None
    core, bias = found
    weight = weight_of(graph, core.args[1], core.name, axis=1)
    if isinstance(weight, Rejection):
        return weight
    leaf = leaf_of(frame, core.args[0])
    if leaf is None:
        return Rejection("its input is not a quantized activation")
    attrs = core.value.attrs
    layouts = str(attrs.data_layout), str(attrs.kernel_layout)
    if layouts not in _CORES[core.op]:
        return Rejection(f"its layout is {'/'.join(layouts)}")
    if not leaf.layout == frame.layout == layouts[0].lower():
        return Rejection(f"its tensors do not have their channels as in {layouts[0]}")
    if max(weight.values.shape[2:]) > LARGEST_KERNEL:
        kernel = "×".join(map(str, weight.values.shape[2:]))
        return Rejection(f"its kernel of {kernel} exceeds {LARGEST_KERNEL}")
    groups = int(attrs.groups)
    each = Weight(_output_first(weight.values, groups), np.tile(weight.scale, groups), 0)
    dense = without_groups(each.values, weight.zero_point, groups)
    if isinstance(dense, Rejection):
        return dense
    kernels = np.ascontiguousarray(dense.transpose(0, 2, 3, 1))
    spread = Weight(each.values, each.scale, weight.zero_point)
    product = product_of(frame, leaf, spread, kernels, bias)
    if isinstance(product, Rejection):
        return product
    dims = len(core.shape) - 2
    compute = ConvTranspose2d(
        weight=kernels,
        bias=product.bias,
        input_zero_point=product.input_zero_point,
        weight_zero_point=product.weight_zero_point,
        requantize=product.requantize,
        stride=_two(attrs.strides, 1),
        padding=_two(list(attrs.padding)[:dims], 0),
        dilation=_two(attrs.dilation, 1),
    )
    return operator_of(frame, "conv_transpose2d", (leaf,), compute)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Σ (x - zx)(w - zw) over the inputs whose window covers an output, + bias, requantized."""
    (x,) = arguments.activations
    compute, values = op.compute, arguments.values
    moved = padded(x, (0, 0, 0, 0), "int16", 0, values.input_zero_point)
    _, kernel_h, kernel_w, inputs = compute.weight.shape
    _, height, width, _ = x.shape
    channel = te.reduce_axis((0, inputs), name="channel")
    tap_h = te.reduce_axis((0, kernel_h), name="tap_h")
    tap_w = te.reduce_axis((0, kernel_w), name="tap_w")

    def source(at: Any, tap: Any, axis: int, size: int) -> tuple[Any, Any]:
        """The input of one axis that reaches an output by a tap, and whether there is one."""
        stride = compute.stride[axis]
        distance = at + compute.padding[axis] - tap * compute.dilation[axis]
        index = te.floordiv(distance, stride)
        exists = tirx.all(te.floormod(distance, stride) == 0, index >= 0, index < size)
        return index, exists

    def product(image: Any, row: Any, column: Any, out: Any) -> Any:
        i, rows = source(row, tap_h, 0, height)
        j, columns = source(column, tap_w, 1, width)
        factor = values.weight(out, tap_h, tap_w, channel).astype("int32")
        factor = factor - values.weight_zero_point
        term = moved(image, i, j, channel).astype("int32") * factor
        here = tirx.if_then_else(tirx.all(rows, columns), term, tirx.const(0, "int32"))
        return te.sum(here, axis=[channel, tap_h, tap_w])

    sums = te.compute(output_shape(op), product, name="accumulator")

    def element(*index: Any) -> Any:
        total = sums(*index) + values.bias(index[3])
        return requantized(total, values.requantize, index[3])

    return output(op, element, op.op)


def _output_first(values: I8, groups: int) -> I8:
    """(in, out / groups, …) → (out, in / groups, kernel_h, kernel_w)."""
    inputs, outputs, *taps = values.shape
    kernel = (1, *taps)[-2:]
    grouped = values.reshape(groups, inputs // groups, outputs, *kernel)
    return np.concatenate([part.swapaxes(0, 1) for part in grouped])


def _two(numbers: Any, missing: int) -> tuple[int, int]:
    """One or two numbers as those of height and width; an axis that is absent has `missing`."""
    first, second = (missing, *(int(number) for number in numbers))[-2:]
    return first, second


OPERATOR = Operator(
    ops=("conv_transpose2d",),
    starts=(*_CORES, "relax.add"),
    compute=ConvTranspose2d,
    read=read,
    expression=expression,
)
