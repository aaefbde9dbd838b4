"""Convolutions over one or two axes, with or without bias."""

from __future__ import annotations

from typing import Any

from tvm import te

from accelsim.artifacts import Conv2d
from accelsim.legalize.expressions import Arguments, output, output_shape, padded, requantized
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.operators import Operator
from accelsim.legalize.weights import core_and_bias, product_of, weight_of, without_groups

_CORES = {
    "relax.nn.conv1d": (("NCW", "OIW"),),
    "relax.nn.conv2d": (("NCHW", "OIHW"), ("NHWC", "OIHW")),
}
LARGEST_KERNEL = 16


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A conv1d or conv2d with or without bias."""
    graph = frame.graph
    found = core_and_bias(graph, node, _CORES)
    if found is None:
        return None
    core, bias = found
    weight = weight_of(graph, core.args[1], core.name)
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
    outputs, _, *kernel = weight.values.shape
    if max(kernel) > LARGEST_KERNEL:
        return Rejection(f"its kernel of {'×'.join(map(str, kernel))} exceeds {LARGEST_KERNEL}")
    groups, channels = int(attrs.groups), leaf.shape[leaf.layout.index("c")]
    depthwise = groups > 1 and groups == channels == outputs
    values = weight.values
    if groups > 1 and not depthwise:
        dense = without_groups(values, weight.zero_point, groups)
        if isinstance(dense, Rejection):
            return dense
        values = dense
    kernels = values.reshape(*values.shape[:2], *_two(kernel, 1)).transpose(0, 2, 3, 1)
    product = product_of(frame, leaf, weight, kernels, bias)
    if isinstance(product, Rejection):
        return product
    before, after = _halves(attrs.padding)
    compute = Conv2d(
        weight=kernels.copy(),
        bias=product.bias,
        input_zero_point=product.input_zero_point,
        weight_zero_point=product.weight_zero_point,
        requantize=product.requantize,
        stride=_two(attrs.strides, 1),
        padding=(*_two(before, 0), *_two(after, 0)),
        dilation=_two(attrs.dilation, 1),
        depthwise=depthwise,
    )
    return operator_of(frame, "depthwise_conv2d" if depthwise else "conv2d", (leaf,), compute)


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """Σ (x - zx)(w - zw) + bias, requantized."""
    (x,) = arguments.activations
    compute, values = op.compute, arguments.values
    inside = padded(x, compute.padding, "int16", 0, values.input_zero_point)
    _, kernel_h, kernel_w, inputs = compute.weight.shape
    (stride_h, stride_w), (dilation_h, dilation_w) = compute.stride, compute.dilation
    channel = te.reduce_axis((0, inputs), name="channel")
    tap_h = te.reduce_axis((0, kernel_h), name="tap_h")
    tap_w = te.reduce_axis((0, kernel_w), name="tap_w")
    centred = te.compute(
        compute.weight.shape,
        lambda *index: (
            values.weight(*index).astype("int16") - values.weight_zero_point.astype("int16")
        ),
        name="centred",
    )

    def product(image: Any, row: Any, column: Any, out: Any) -> Any:
        activation = inside(
            image,
            row * stride_h + tap_h * dilation_h,
            column * stride_w + tap_w * dilation_w,
            out if compute.depthwise else channel,
        )
        factor = centred(out, tap_h, tap_w, channel)
        return te.sum(
            activation.astype("int32") * factor.astype("int32"), axis=[channel, tap_h, tap_w]
        )

    sums = te.compute(output_shape(op), product, name="accumulator")

    def element(*index: Any) -> Any:
        total = sums(*index) + values.bias(index[3])
        return requantized(total, values.requantize, index[3])

    return output(op, element, op.op)


def _two(values: Any, missing: int) -> tuple[int, int]:
    """One or two numbers as those of height and width; an axis that is absent has `missing`."""
    numbers = [int(value) for value in values]
    first, second = (missing, *numbers) if len(numbers) == 1 else numbers
    return first, second


def _halves(padding: Any) -> tuple[list[int], list[int]]:
    """Padding before and after each axis."""
    numbers = [int(value) for value in padding]
    return numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]


OPERATOR = Operator(
    ops=("conv2d", "depthwise_conv2d"),
    starts=(*_CORES, "relax.add"),
    compute=Conv2d,
    read=read,
    expression=expression,
)
