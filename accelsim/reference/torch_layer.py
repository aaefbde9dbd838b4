"""PyTorch's quantized kernels for a layer of the network, where no FX int8 network came with it.

What comes in: a `Network`, a layer and integers. What goes out: what the qnnpack kernel computes,
or None where PyTorch has no kernel of that form. It must not know the integer reference's
arithmetic: scales, zero points and float biases go to PyTorch as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from accelsim.artifacts import I8
from accelsim.errors import ModelError
from accelsim.quantize.layouts import from_nhwc, to_nhwc
from accelsim.reference.network import Network, QuantizedTensor, ReferenceLayer
from accelsim.reference.operators import HOST, TorchKernel, family
from accelsim.reference.site import site_of
from accelsim.reference.torch_tensor import SHIFT, quantized_tensor


def torch_kernel(network: Network, layer: ReferenceLayer, rounding: str) -> TorchKernel | None:
    """PyTorch's one kernel for the layer, or None."""
    kernel = None if layer.family == HOST else family(layer.family).torch
    covered = kernel is not None and kernel.covers(site_of(network, layer, rounding))
    return kernel if covered else None


def run_kernel(
    network: Network, layer: ReferenceLayer, inputs: tuple[I8, ...], rounding: str
) -> I8:
    """The layer's kernel on int8 (n, h, w, c) inputs, under `qnnpack_engine`."""
    output = network.tensors[layer.output]
    kernel = torch_kernel(network, layer, rounding)
    if kernel is None:
        raise ModelError(f"layer '{layer.name}' has no kernel of PyTorch")
    operands = [
        _operand(value, network.tensors[name], shape)
        for name, value, shape in zip(layer.inputs, inputs, layer.core_shapes, strict=True)
    ]
    result = kernel.run(site_of(network, layer, rounding), operands)
    stored = np.asarray(result.int_repr().numpy()).astype(np.int16) - SHIFT
    low, high = _limits(layer.limits, output)
    clamped = np.clip(stored, low, high).astype(np.int8).reshape(output.shape)
    return to_nhwc(clamped, output.axis)


def _operand(value: I8, tensor: QuantizedTensor, shape: tuple[int, ...]) -> Any:
    """int8 (n, h, w, c) → a quint8 tensor in the shape in which the core operator sees it."""
    stored = from_nhwc((value.astype(np.int16) + SHIFT).astype(np.uint8), tensor.shape, tensor.axis)
    stored = stored.reshape(shape)
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
