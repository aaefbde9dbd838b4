"""PyTorch's quantized kernels for a layer of the network, where no FX int8 network came with it.

What comes in: a `Network`, a layer and integers. What goes out: what the qnnpack kernel computes,
or None where PyTorch has no kernel of that form. It must not know the integer reference's
arithmetic: scales, zero points and float biases go to PyTorch as they are.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import I8
from accelsim.reference.network import (
    Add,
    Affine,
    Host,
    Network,
    Pool,
    QuantizedTensor,
    ReferenceLayer,
)
from accelsim.reference.torch_tensor import quantized_tensor

SHIFT = 128  # qnnpack takes quint8: the int8 domain moved by an exact change of zero point


def has_kernel(network: Network, layer: ReferenceLayer, rounding: str) -> bool:
    """Whether PyTorch has one kernel for the layer: same padding on both sides, same qparams.

    Its sum is a golden of networks with its own rule of adding only.
    """
    source, output = network.tensors[layer.inputs[0]], network.tensors[layer.output]
    core = layer.core
    if isinstance(core, Host):
        return False
    if isinstance(core, (Affine, Pool)):
        top, left, bottom, right = core.padding
        if isinstance(core, Pool):
            bottom, right = bottom - core.overhang[0], right - core.overhang[1]
        if (top, left) != (bottom, right):
            return False
    if isinstance(core, Add):
        return rounding == "qnnpack"
    if isinstance(core, Affine):
        return True
    return (source.scale, source.zero_point) == (output.scale, output.zero_point)


def run_kernel(network: Network, layer: ReferenceLayer, inputs: tuple[I8, ...]) -> I8:
    """The layer's kernel on int8 (n, h, w, c) inputs, under `qnnpack_engine`."""
    output = network.tensors[layer.output]
    operands = [
        _operand(value, network.tensors[name], shape)
        for name, value, shape in zip(layer.inputs, inputs, layer.core_shapes, strict=True)
    ]
    result = _run(layer, operands, output)
    stored = np.asarray(result.int_repr().numpy()).astype(np.int16) - SHIFT
    low, high = _limits(layer.limits, output)
    clamped = np.clip(stored, low, high).astype(np.int8).reshape(output.shape)
    moved = clamped.transpose(0, 2, 3, 1) if clamped.ndim == 4 else clamped
    return np.ascontiguousarray(moved.reshape(output.layout))


def _operand(value: I8, tensor: QuantizedTensor, shape: tuple[int, ...]) -> Any:
    """int8 (n, h, w, c) → a quint8 tensor in the shape in which the core operator sees it."""
    stored = (value.astype(np.int16) + SHIFT).astype(np.uint8)
    if len(tensor.shape) == 4:
        stored = stored.transpose(0, 3, 1, 2)
    stored = np.ascontiguousarray(stored.reshape(tensor.shape).reshape(shape))
    return quantized_tensor(stored, tensor.scale, tensor.zero_point + SHIFT)


def _limits(limits: tuple[float, float], output: QuantizedTensor) -> tuple[int, int]:
    """Real clamp limits by PyTorch's clamp, and the quantizer's own, in the int8 domain."""
    ends = np.array([-128 + output.offset, 127 + output.offset], output.stored)
    tensor = quantized_tensor(ends, output.scale, output.zero_point + output.offset)
    beyond = 1000.0 * float(output.scale)  # more steps than there are levels
    lowest, highest = (min(max(limit, -beyond), beyond) for limit in limits)
    tensor = torch.clamp(tensor, lowest, highest)
    low, high = (int(level) - output.offset for level in tensor.int_repr())
    return max(low, output.clamp_min), min(high, output.clamp_max)


def _run(layer: ReferenceLayer, operands: list[Any], output: QuantizedTensor) -> Any:
    core = layer.core
    scale, zero_point = float(output.scale), output.zero_point + SHIFT
    relu = layer.limits == (0.0, math.inf)
    kernels: Any = torch.ops.quantized
    if isinstance(core, Add):
        return (kernels.add_relu if relu else kernels.add)(*operands, scale, zero_point)
    if isinstance(core, Affine):
        bias = torch.from_numpy(np.ascontiguousarray(core.bias, dtype=np.float32))
        if core.weight.ndim == 2:
            packed = kernels.linear_prepack(_weight(core), bias)
            run = kernels.linear_relu if relu else kernels.linear
            return run(operands[0], packed, scale, zero_point)
        sizes = ([*core.stride], [*core.padding[:2]], [*core.dilation], core.groups)
        packed = kernels.conv2d_prepack(_weight(core), bias, *sizes)
        run = kernels.conv2d_relu if relu else kernels.conv2d
        return run(operands[0], packed, scale, zero_point)
    if isinstance(core, Pool):
        functions = torch.nn.functional
        pool: Any = functions.max_pool2d if core.kind == "max" else functions.avg_pool2d
        ceil = any(core.overhang)
        return pool(operands[0], core.kernel, core.stride, core.padding[:2], ceil_mode=ceil)
    return operands[0]


def _weight(core: Affine) -> Any:
    """Per tensor where all channels agree, as FX does it; else per channel."""
    same = len(set(core.weight_scale.tolist())) == len(set(core.weight_zero_point.tolist())) == 1
    weight = np.ascontiguousarray(core.weight)
    if same:
        return quantized_tensor(weight, core.weight_scale[0], int(core.weight_zero_point[0]))
    make: Any = torch._make_per_channel_quantized_tensor
    scales = torch.from_numpy(core.weight_scale.astype(np.float64))
    zero_points = torch.from_numpy(core.weight_zero_point.astype(np.int64))
    with warnings.catch_warnings():  # PyTorch announces the end of quantized tensors once a process
        warnings.simplefilter("ignore", UserWarning)
        return make(torch.from_numpy(weight), scales, zero_points, 0)
