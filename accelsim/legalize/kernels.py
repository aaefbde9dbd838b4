"""Tensor expressions of the integer operators, so that a legalized module runs on a CPU.

What comes in: placeholders and an `IntegerOp`. What goes out: a tensor expression whose arguments
are those of `legalize.form`, in the graph's NCHW layout. It must not know Relax. Zero points and
limits are read from the parameters, so that equal shapes share one PrimFunc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tirx

from accelsim.artifacts import Add, Conv2d, Pool2d
from accelsim.legalize.operators import IntegerOp

Expression = Any


def expression(op: IntegerOp, arguments: Sequence[Any]) -> Any:
    """The tensor expression of `op` over its call's arguments."""
    compute = op.compute
    if compute is None:
        (x, _, _) = arguments
        return te.compute(op.shape, lambda *index: _at(x, index), name="reshape")
    if isinstance(compute, Conv2d):
        return _convolution(op, compute, arguments)
    if isinstance(compute, Add):
        return _add(op, arguments) if compute.fixed is None else _add_fixed(op, arguments)
    return _max(op, compute, arguments) if compute.kind == "max" else _sum(op, compute, arguments)


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


def quantized(x: Any, inverse_scale: Any, zero_point: int, dtype: str) -> Any:
    """rint(x · (1 / scale)) + zero_point, saturated: PyTorch multiplies where relax divides."""
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)

    def element(*index: Any) -> Expression:
        steps = tirx.nearbyint(x(*index) * tirx.const(inverse_scale, "float32"))
        lowest, highest = (
            tirx.const(float(limit - zero_point), "float32") for limit in (low, high)
        )
        bounded = tirx.max(tirx.min(steps, highest), lowest).astype("int32")
        return (bounded + zero_point).astype(dtype)

    return te.compute(x.shape, element, name="quantize")


def _at(x: Any, index: Sequence[Any]) -> Expression:
    """An element of `x` by (n, c, …), where one of the two may lack its 1×1 spatial axes."""
    rank = len(x.shape)
    full = (*index, *[0] * (rank - len(index)))
    return x(*full[:rank])


def _four(values: Sequence[Any], missing: int = 1) -> tuple[Any, Any, Any, Any]:
    """(n, c, h, w) of (n, c, …), with `missing` for absent spatial axes."""
    height, width = (values[2], values[3]) if len(values) == 4 else (missing, missing)
    return values[0], values[1], height, width


def _requantized(value: Expression, multiplier: Expression, parameters: Any, at: int) -> Expression:
    """int32 → int8, the `fp32` mode; zero point and limits are parameters[at:at + 3].

    The zero point is added after the clamp, where every value is exact in float32.
    """
    zero_point, low, high = parameters[at], parameters[at + 1], parameters[at + 2]
    scaled = tirx.nearbyint(value.astype("float32") * multiplier)
    return _clamped(scaled, zero_point, low, high)


def _clamped(
    value: Expression, zero_point: Expression, low: Expression, high: Expression
) -> Expression:
    lowest, highest = ((limit - zero_point).astype("float32") for limit in (low, high))
    bounded = tirx.max(tirx.min(value, highest), lowest)
    return (bounded.astype("int32") + zero_point).astype("int8")


def _padded(x: Any, padding: Sequence[int], dtype: str, fill: Any, offset: Any) -> Any:
    """(n, c, h, w) with `x - offset` inside and `fill` in the padding, of `dtype`."""
    n, c, height, width = _four(x.shape)
    top, left, bottom, right = padding

    def element(image: Any, channel: Any, row: Any, column: Any) -> Expression:
        inside = _at(x, (image, channel, row - top, column - left)).astype(dtype)
        inside = inside - offset.astype(dtype)
        if not any(padding):
            return inside
        rows = tirx.all(row >= top, row < height + top)
        columns = tirx.all(column >= left, column < width + left)
        return tirx.if_then_else(tirx.all(rows, columns), inside, tirx.const(fill, dtype))

    shape = (n, c, height + top + bottom, width + left + right)
    return te.compute(shape, element, name="padded")


def _convolution(op: IntegerOp, compute: Conv2d, arguments: Sequence[Any]) -> Any:
    x, weight, bias, multiplier, parameters, _ = arguments
    (stride_h, stride_w), (dilation_h, dilation_w) = compute.stride, compute.dilation
    padded = _padded(x, compute.padding, "int16", 0, parameters[0])
    outputs, inputs, kernel_h, kernel_w = weight.shape
    channel = te.reduce_axis((0, inputs), name="channel")
    tap_h = te.reduce_axis((0, kernel_h), name="tap_h")
    tap_w = te.reduce_axis((0, kernel_w), name="tap_w")
    height = (padded.shape[2] - (kernel_h - 1) * dilation_h - 1) // stride_h + 1
    width = (padded.shape[3] - (kernel_w - 1) * dilation_w - 1) // stride_w + 1
    centred = te.compute(
        weight.shape,
        lambda *index: weight(*index).astype("int16") - parameters[1].astype("int16"),
        name="centred",
    )

    def product(image: Any, out: Any, row: Any, column: Any) -> Expression:
        source = out if compute.depthwise else channel
        activation = padded(
            image,
            source,
            row * stride_h + tap_h * dilation_h,
            column * stride_w + tap_w * dilation_w,
        )
        factor = centred(out, channel, tap_h, tap_w)
        return te.sum(
            activation.astype("int32") * factor.astype("int32"), axis=[channel, tap_h, tap_w]
        )

    shape = (x.shape[0], outputs, height, width)
    sums = te.compute(shape, product, name="accumulator")
    return te.compute(
        op.shape,
        lambda *index: _requantized(
            _at(sums, index) + bias(index[1]), multiplier(index[1]), parameters, 2
        ),
        name=op.op,
    )


def _term(op: IntegerOp, x: Any, parameters: Any, scales: Any, side: int) -> Any:
    """(x - zero_point) · scale of one side of an add."""
    return te.compute(
        op.shape,
        lambda *index: (
            (x(*index).astype("int32") - parameters[side]).astype("float32") * scales[side]
        ),
        name=f"term_{side}",
    )


def _add(op: IntegerOp, arguments: Sequence[Any]) -> Any:
    a, b, parameters, scales = arguments
    # Each product is a stage of its own, so that no compiler fuses it into a multiply-add.
    terms = [_term(op, x, parameters, scales, side) for side, x in enumerate((a, b))]

    def total(*index: Any) -> Expression:
        value = tirx.nearbyint((terms[0](*index) + terms[1](*index)) * scales[3])
        return _clamped(value, parameters[2], parameters[3], parameters[4])

    return te.compute(op.shape, total, name="add")


def _add_fixed(op: IntegerOp, arguments: Sequence[Any]) -> Any:
    """(Σ (x - zero_point) · multiplier) / 2^shift, ties away from zero, all in int32."""
    a, b, parameters, _ = arguments
    shift = parameters[7]

    def total(*index: Any) -> Expression:
        left, right = (
            (x(*index).astype("int32") - parameters[side]) * parameters[5 + side]
            for side, x in enumerate((a, b))
        )
        value = left + right
        magnitude = tirx.max(value, -value)
        # One bit below the point is kept, then rounded up: the magnitude alone may need 31 bits.
        steps = ((magnitude >> (shift - 1)) + 1) >> 1
        signed = tirx.if_then_else(value < 0, -steps, steps) + parameters[2]
        bounded = tirx.max(tirx.min(signed, parameters[4]), parameters[3])
        return bounded.astype("int8")

    return te.compute(op.shape, total, name="add_fixed")


def _window(op: IntegerOp, compute: Pool2d, padded: Any, reduce: Any, name: str) -> Any:
    tap_h = te.reduce_axis((0, compute.kernel[0]), name="tap_h")
    tap_w = te.reduce_axis((0, compute.kernel[1]), name="tap_w")
    stride_h, stride_w = compute.stride

    def element(*index: Any) -> Expression:
        image, channel, row, column = _four(index, 0)
        value = padded(image, channel, row * stride_h + tap_h, column * stride_w + tap_w)
        return reduce(value, axis=[tap_h, tap_w])

    return te.compute(op.shape, element, name=name)


def _max(op: IntegerOp, compute: Pool2d, arguments: Sequence[Any]) -> Any:
    x, parameters, _ = arguments
    padded = _padded(x, compute.padding, "int8", -128, tirx.const(0, "int8"))
    largest = _window(op, compute, padded, te.max, "largest")
    return te.compute(
        op.shape,
        lambda *index: tirx.max(
            tirx.min(largest(*index), parameters[2].astype("int8")), parameters[1].astype("int8")
        ),
        name=op.op,
    )


def _sum(op: IntegerOp, compute: Pool2d, arguments: Sequence[Any]) -> Any:
    x, multiplier, parameters, _ = arguments
    padded = _padded(x, compute.padding, "int32", 0, parameters[0])
    sums = _window(op, compute, padded, te.sum, "sums")
    return te.compute(
        op.shape,
        lambda *index: _requantized(sums(*index), multiplier(index[1]), parameters, 1),
        name=op.op,
    )
