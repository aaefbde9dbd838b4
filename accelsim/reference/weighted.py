"""Constant weights and biases of products, as the QDQ graph has them.

What comes in: values of an island. What goes out: scales and zero points one a channel, biases in
real numbers and, where the model has them so, in integers. It must not know which operator
multiplies.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import F32, I8, I32
from accelsim.reference.flow import Node, Weight
from accelsim.reference.network import Shape
from accelsim.reference.torch_tensor import quantized_tensor


def without_bias(value: Any) -> tuple[Any, np.ndarray | Weight | None]:
    """The product and the constant added to it, on either side."""
    if isinstance(value, Node) and value.operator == "relax.add":
        for product, bias in (value.operands, value.operands[::-1]):
            if isinstance(product, Node) and isinstance(bias, (np.ndarray, Weight)):
                return product, bias
    return value, None


def biases(
    bias: np.ndarray | Weight | None, channels: int, trailing: int, steps: F32
) -> tuple[F32, I32 | None] | None:
    """A bias per channel, real and in integers if it is so stored, or None where it is no bias.

    Behind the axis of the channels it has `trailing` axes. A dequantized int32 constant is a bias
    in steps if its scales are the accumulator's `steps`, but for the rounding of their product.
    """
    if bias is None:
        return np.zeros(channels, np.float32), None
    shape: Shape = (channels, *(1,) * trailing)
    leading = len(bias.shape) - len(shape)
    if leading < 0 or tuple(bias.shape) != (1,) * leading + shape:
        return None
    if isinstance(bias, np.ndarray):
        return bias.reshape(-1).astype(np.float32), None
    near = np.allclose(bias.scale, steps, rtol=2.0**-20, atol=0)
    if bias.values.dtype != np.int32 or np.any(bias.zero_point) or not near:
        return None
    integers = bias.values.reshape(-1)
    return (integers.astype(np.float32) * steps).astype(np.float32), integers


def per_channel(values: np.ndarray, channels: int, dtype: Any) -> np.ndarray | None:
    """One value a channel, or None where there are neither one nor as many."""
    if values.size not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(values.reshape(-1).astype(dtype), (channels,)))


def centred(weight: I8, zero_point: I32) -> np.ndarray:
    """Weights minus their zero points, int16; output channels are the first axis."""
    zero = zero_point.reshape((-1,) + (1,) * (weight.ndim - 1))
    return (weight.astype(np.int32) - zero).astype(np.int16)


def torch_weight(values: I8, scale: F32, zero_point: I32, axis: int = 0) -> Any:
    """Per tensor where all channels agree, as FX does it; else per channel along `axis`."""
    values = np.ascontiguousarray(values)
    if len(set(scale.tolist())) == len(set(zero_point.tolist())) == 1:
        return quantized_tensor(values, scale[0], int(zero_point[0]))
    make: Any = torch._make_per_channel_quantized_tensor
    scales = torch.from_numpy(scale.astype(np.float64))
    zero_points = torch.from_numpy(zero_point.astype(np.int64))
    with warnings.catch_warnings():  # PyTorch announces the end of quantized tensors once a process
        warnings.simplefilter("ignore", UserWarning)
        return make(torch.from_numpy(values), scales, zero_points, axis)
