"""The legalized form: an integer operator as one `call_tir` whose arguments say everything.

What comes in: integer operators. What goes out: the constant arguments of their calls, and back
from a call's name and constants to a `LayerOp`. Passes keep a call's callee name and arguments
and nothing else, so all parameters travel as constants:

    conv2d, depthwise_conv2d, linear   x, weight (OIHW), bias, multiplier, parameters, scales
    add                                a, b, parameters, scales (and 1 / output scale)
    max_pool2d                         x, parameters, scales
    avg_pool2d, requantize, clip       x, multiplier, parameters, scales
    reshape                            x, parameters, scales

`parameters` is int32, `scales` float32: of the inputs, then of the output. In mode `fixed` the
parameters of an add end with its multipliers and shift. It must not know Relax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Add, Conv2d, FixedAdd, LayerOp, Pool2d, Requantize
from accelsim.legalize.operators import IntegerOp

PREFIX = "accelsim_"
CONVOLUTIONS = ("depthwise_conv2d", "conv2d", "linear")
SUMS = ("avg_pool2d", "requantize", "clip")
_NAME = re.compile(
    PREFIX + "(" + "|".join((*CONVOLUTIONS, "add", "max_pool2d", *SUMS, "reshape")) + r")_?\d*"
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a call's name and constants say. Zero points are int8, scales are for reports."""

    op: str
    compute: LayerOp | None
    input_zero_points: tuple[int, ...]
    input_scales: tuple[float, ...]
    zero_point: int
    scale: float


def operator_name(callee: str) -> str | None:
    """The operator of a PrimFunc name such as "accelsim_conv2d3", or None for other functions."""
    match = _NAME.fullmatch(callee)
    return match.group(1) if match else None


def activation_count(op: str) -> int:
    """How many leading arguments of a call are activations."""
    return 2 if op == "add" else 1


def constants_of(op: IntegerOp) -> tuple[np.ndarray, ...]:
    """The constant arguments of the operator's call, in order."""
    scales = np.array(
        [quantization.scale for quantization in (*op.input_quantization, op.quantization)],
        dtype=np.float32,
    )
    compute = op.compute
    values: tuple[int, ...]
    if compute is None:
        return _parameters(op.input_quantization[0].int8_zero_point), scales
    if isinstance(compute, Add):
        values = (
            *(compute.a_zero_point, compute.b_zero_point, compute.zero_point),
            *(compute.clamp_min, compute.clamp_max),
        )
        if compute.fixed is not None:
            values += (
                *(compute.fixed.a_multiplier, compute.fixed.b_multiplier),
                compute.fixed.shift,
            )
        factors = np.array([compute.inverse_output_scale], np.float32)
        return _parameters(*values), np.concatenate([scales, factors])
    if isinstance(compute, Conv2d):
        requantize = compute.requantize
        values = (
            *(compute.input_zero_point, compute.weight_zero_point, requantize.zero_point),
            *(requantize.clamp_min, requantize.clamp_max),
            *(*compute.stride, *compute.padding, *compute.dilation, int(compute.depthwise)),
        )
        weight = np.ascontiguousarray(compute.weight.transpose(0, 3, 1, 2))
        return weight, compute.bias, requantize.multiplier, _parameters(*values), scales
    window = (*compute.kernel, *compute.stride, *compute.padding)
    if compute.requantize is None:
        limits = (compute.input_zero_point, compute.clamp_min, compute.clamp_max)
        return _parameters(*limits, *window), scales
    requantize = compute.requantize
    limits = (requantize.zero_point, requantize.clamp_min, requantize.clamp_max)
    values = (compute.input_zero_point, *limits, *window)
    return requantize.multiplier, _parameters(*values), scales


def decode(op: str, constants: Sequence[np.ndarray]) -> Decoded:
    """The inverse of `constants_of`."""
    parameters = [int(value) for value in constants[-2]]
    scales = constants[-1]
    reals = tuple(float(scale) for scale in scales)
    if op == "reshape":
        zero_point = parameters[0]
        return Decoded(op, None, (zero_point,), reals[:1], zero_point, reals[1])
    if op == "add":
        a, b, zero_point, low, high, *factors = parameters
        fixed = FixedAdd(*factors) if factors else None
        add = Add(a, b, scales[0], scales[1], scales[3], zero_point, low, high, fixed)
        return Decoded(op, add, (a, b), reals[:2], zero_point, reals[2])
    if op == "max_pool2d":
        zero_point, low, high, *window = parameters
        pool = _pool("max", window, zero_point, None, low, high)
        return Decoded(op, pool, (zero_point,), reals[:1], zero_point, reals[1])
    if op in SUMS:
        source, zero_point, low, high, *window = parameters
        requantize = Requantize(constants[0], zero_point, low, high)
        pool = _pool("sum", window, source, requantize, -128, 127)
        return Decoded(op, pool, (source,), reals[:1], zero_point, reals[1])
    source, weight_zero_point, zero_point, low, high, *geometry = parameters
    weight, bias, multiplier = constants[:3]
    convolution = Conv2d(
        weight=np.ascontiguousarray(weight.transpose(0, 2, 3, 1)),
        bias=bias,
        input_zero_point=source,
        weight_zero_point=weight_zero_point,
        requantize=Requantize(multiplier, zero_point, low, high),
        stride=(geometry[0], geometry[1]),
        padding=(geometry[2], geometry[3], geometry[4], geometry[5]),
        dilation=(geometry[6], geometry[7]),
        depthwise=bool(geometry[8]),
    )
    return Decoded(op, convolution, (source,), reals[:1], zero_point, reals[1])


def _parameters(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def _pool(
    kind: str,
    window: Sequence[int],
    input_zero_point: int,
    requantize: Requantize | None,
    clamp_min: int,
    clamp_max: int,
) -> Pool2d:
    kernel_h, kernel_w, stride_h, stride_w, top, left, bottom, right = window
    return Pool2d(
        kind=kind,
        kernel=(kernel_h, kernel_w),
        stride=(stride_h, stride_w),
        padding=(top, left, bottom, right),
        input_zero_point=input_zero_point,
        requantize=requantize,
        clamp_min=clamp_min,
        clamp_max=clamp_max,
    )
