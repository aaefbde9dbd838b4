"""Convolutions, transposed ones, and QLinearConv."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from accelsim.importer.onnx import OnnxNode
from accelsim.quantize.onnx.emitter import Emitter, Levels, Stored, Weight, ints, shape_of
from accelsim.quantize.onnx.levels import integers, levels_of

op = relax.op


def padding_of(g: Emitter, node: OnnxNode, size: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """Padding before all axes, then after them, of `pads` or `auto_pad`."""
    rank = len(size)
    mode = node.attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = ints(node.attributes.get("pads", (0,) * 2 * rank))
        if len(pads) != 2 * rank or min(pads) < 0:
            raise g.fail(f"has the padding {pads} for {rank} axes")
        return pads
    if mode == "VALID":
        return [0] * 2 * rank
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise g.fail(f"has the unknown padding {mode!r}")
    strides = axes_of(g, node, "strides", rank)
    dilations = axes_of(g, node, "dilations", rank)
    before, after = [], []
    for length, k, stride, dilation in zip(size, kernel, strides, dilations, strict=True):
        total = max(0, (-(-length // stride) - 1) * stride + (k - 1) * dilation + 1 - length)
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return before + after


def axes_of(g: Emitter, node: OnnxNode, key: str, rank: int) -> list[int]:
    """Positive numbers of an attribute with one for each axis of the window, 1 where it lacks."""
    found = ints(node.attributes.get(key, (1,) * rank))
    if len(found) != rank or min(found) < 1:
        raise g.fail(f"has {key} {found} for {rank} axes")
    return found


def window_rank(g: Emitter, shape: Sequence[int]) -> int:
    """1 or 2. Raises ModelError for windows of more axes."""
    rank = len(shape) - 2
    if rank not in (1, 2):
        raise g.fail(f"has a tensor of shape {tuple(shape)}; windows of one or two axes are known")
    return rank


def convolved(g: Emitter, node: OnnxNode, x: Any, weight: Any, bias: Any) -> Any:
    """The convolution of emitted operands; `bias` is a value or None."""
    shape, kernels = shape_of(x), shape_of(weight)
    rank = window_rank(g, shape)
    if len(kernels) != rank + 2:
        raise g.fail(f"has weights of shape {kernels} for an input of shape {shape}")
    function = op.nn.conv2d if rank == 2 else op.nn.conv1d
    value = g.emit(
        function(
            x,
            weight,
            strides=axes_of(g, node, "strides", rank),
            padding=padding_of(g, node, shape[2:], kernels[2:]),
            dilation=axes_of(g, node, "dilations", rank),
            groups=int(node.attributes.get("group", 1)),
        )
    )
    return value if bias is None else biased(g, value, bias, 1)


def biased(g: Emitter, value: Any, bias: Any, axis: int) -> Any:
    """A bias with one number for each element along an axis."""
    rank = len(shape_of(value))
    shape = [1] * rank
    shape[axis] = -1
    if axis == rank - 1:
        shape = [-1]
    if isinstance(bias, np.ndarray):
        added: Any = bias.reshape(shape)
    elif isinstance(bias, Weight):
        scale = bias.levels.scale
        place = shape.index(-1) if scale.size > 1 else 0
        added = Weight(bias.values.reshape(shape), replace(bias.levels, axis=place))
    else:
        source = g.operand(bias)
        full = [extent if extent > 0 else shape_of(source)[0] for extent in shape]
        return g.emit(op.add(value, g.emit(op.reshape(source, full))))
    return g.emit(op.add(value, g.operand(added)))


def conv(g: Emitter, node: OnnxNode) -> Any:
    """Conv."""
    bias = g.value(node.input(2)) if node.input(2) else None
    return convolved(g, node, g.real(node.input(0)), g.real(node.input(1)), bias)


def integer_bias(g: Emitter, name: str, source: Any, weight: Any, gain: float = 1.0) -> Any:
    """An int32 bias in steps of the accumulator, or None where the operator has none."""
    if not name:
        return None
    values = g.numbers(name, "a bias")
    if values.dtype != np.int32 or values.ndim > 2:
        raise g.fail(f"has a bias of {values.dtype} and shape {values.shape}; int32 is due")
    scales = [g.levels(one) if isinstance(one, Stored) else one.levels for one in (source, weight)]
    step = (scales[0].scale * scales[1].scale * np.float32(gain)).astype(np.float32)
    return Weight(values.reshape(-1), Levels(step, np.zeros(step.shape, np.int32), "int32"))


def qlinear_conv(g: Emitter, node: OnnxNode) -> Any:
    """QLinearConv: x, its scale and zero point, weights with theirs, the output's, and a bias."""
    x = integers(g, node.input(0), *node.inputs[1:3])
    weight = integers(g, node.input(3), *node.inputs[4:6], axis=0)
    if not isinstance(weight, Weight):
        raise g.fail("has weights that are known only at run time")
    bias = integer_bias(g, node.input(8), x, weight)
    value = convolved(g, node, g.operand(x), g.operand(weight), bias)
    return g.quantize(value, levels_of(g, *node.inputs[6:8]))


def conv_transpose(g: Emitter, node: OnnxNode) -> Any:
    """ConvTranspose, whose weights are (in, out / groups, …)."""
    x, weight = g.real(node.input(0)), g.real(node.input(1))
    size, kernel = shape_of(x)[2:], shape_of(weight)[2:]
    rank = window_rank(g, shape_of(x))
    strides = axes_of(g, node, "strides", rank)
    dilations = axes_of(g, node, "dilations", rank)
    extra = ints(node.attributes.get("output_padding", (0,) * rank))
    ends = zip(size, strides, kernel, dilations, extra, strict=True)
    full = [s * (n - 1) + e + (k - 1) * d + 1 for n, s, k, d, e in ends]
    mode = node.attributes.get("auto_pad", "NOTSET")
    if "output_shape" in node.attributes or mode.startswith("SAME"):
        wanted = ints(node.attributes.get("output_shape", ()))[-rank:]
        wanted = wanted or [n * s for n, s in zip(size, strides, strict=True)]
        total = [max(0, f - w) for f, w in zip(full, wanted, strict=True)]
        half = [t // 2 for t in total]
        rest = [t - h for t, h in zip(total, half, strict=True)]
        padding = half + rest if mode == "SAME_UPPER" else rest + half
    else:
        padding = padding_of(g, node, size, kernel)
    function = op.nn.conv2d_transpose if rank == 2 else op.nn.conv1d_transpose
    value = g.emit(
        function(
            x,
            weight,
            strides=strides,
            padding=padding,
            output_padding=extra,
            dilation=dilations,
            groups=int(node.attributes.get("group", 1)),
        )
    )
    return value if not node.input(2) else biased(g, value, g.value(node.input(2)), 1)


CONVERTERS = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "QLinearConv": qlinear_conv,
}
