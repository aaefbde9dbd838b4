"""PyTorch's own kernels on a case: float32, and quantized on the qnnpack engine.

What comes in: a case. What goes out: its outputs. It must not know TVM or hardware.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers the exported graph's operators
from numpy.typing import NDArray

from accelsim.ops.case import Activation, Case, Weight
from accelsim.ops.operators import operator_of
from accelsim.quantize import qnnpack_engine

SHIFT = 128  # qnnpack takes quint8: int8 values are moved by an exact change of zero point


def integer_output(case: Case) -> NDArray[Any]:
    """The stored output in its own layout: of the quantized kernel, or of the float kernel."""
    kernel = operator_of(case.operator).quantized
    if kernel is None:
        return quantized_float_output(case)
    with qnnpack_engine(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized tensors are announced to end
        result = kernel(case, [quantized_tensor(one) for one in case.inputs])
        stored = np.asarray(result.int_repr().numpy(), np.uint8)
        return stored if case.dtype == "uint8" else (stored ^ np.uint8(SHIFT)).view(np.int8)


def quantized_float_output(case: Case) -> NDArray[Any]:
    """The float kernel's output, quantized as the exported graph does it."""
    values, _ = float_output(case)
    return quantize(values, case.scale, case.zero, case.dtype)


def quantize(values: NDArray[Any], scale: np.float32, zero: int, dtype: str) -> NDArray[Any]:
    """rint(x · (1/s)) + zero as the exported graph's quantize computes it."""
    limits = np.iinfo(dtype)
    run = torch.ops.quantized_decomposed.quantize_per_tensor
    stored = run(
        torch.from_numpy(np.ascontiguousarray(values)),
        *(float(scale), zero, int(limits.min), int(limits.max), getattr(torch, dtype)),
    )
    return np.asarray(stored.numpy())


def float_output(case: Case) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Output on the dequantized inputs in float32, and the bound of its error by element."""
    operator = operator_of(case.operator)
    reals = [torch.from_numpy(one.reals) for one in case.inputs]
    with torch.no_grad():
        result = operator.torch(case, reals)
        bound = torch.zeros_like(result)
        if operator.error is not None:
            bound = operator.error(case, reals, result)
        if case.spec.relu:
            result = torch.relu(result)
    return result.numpy(), bound.numpy()


def exact_output(case: Case) -> NDArray[np.float64]:
    """The float kernel in float64 on the dequantized inputs."""
    reals = [torch.from_numpy(one.reals.astype(np.float64)) for one in case.inputs]
    with torch.no_grad():
        result = operator_of(case.operator).torch(case, reals)
        if case.spec.relu:
            result = torch.relu(result)
    return np.asarray(result.numpy(), np.float64)


def quantized_tensor(one: Activation) -> Any:
    """A quint8 tensor of the same real values."""
    values, zero = one.values, one.zero
    if values.dtype == np.int8:
        values, zero = values.view(np.uint8) ^ np.uint8(SHIFT), zero + SHIFT
    return torch._make_per_tensor_quantized_tensor(
        torch.from_numpy(np.ascontiguousarray(values)), float(one.scale), zero
    )


def quantized_weight(weight: Weight) -> Any:
    """A qint8 tensor, per tensor or per channel."""
    values = torch.from_numpy(np.ascontiguousarray(weight.values))
    if weight.scale.size == 1:
        return torch._make_per_tensor_quantized_tensor(
            values, float(weight.scale[0]), int(weight.zero[0])
        )
    scale, zero = torch.from_numpy(weight.scale.astype(np.float64)), torch.from_numpy(weight.zero)
    return torch._make_per_channel_quantized_tensor(values, scale, zero, weight.axis)
