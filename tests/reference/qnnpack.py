"""PyTorch's own quantized kernels on the qnnpack engine, called directly: the tests' oracle."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def engine() -> Iterator[None]:
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    try:
        yield
    finally:
        torch.backends.quantized.engine = before


def tensor(values: np.ndarray, scale: Any, zero_point: int) -> Any:
    with warnings.catch_warnings():  # quantized tensors are announced to end with torch 2.14
        warnings.simplefilter("ignore", UserWarning)
        return torch._make_per_tensor_quantized_tensor(
            torch.from_numpy(np.ascontiguousarray(values)), float(scale), int(zero_point)
        )


def weight(values: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> Any:
    if scale.size == 1:
        return tensor(values, scale.item(), zero_point.item())
    return torch._make_per_channel_quantized_tensor(
        torch.from_numpy(values),
        torch.from_numpy(scale.astype(np.float64)),
        torch.from_numpy(zero_point.astype(np.int64)),
        0,
    )


def conv2d(x: Any, w: Any, bias: np.ndarray, scale: Any, zero_point: int, **g: Any) -> np.ndarray:
    relu = g.pop("relu", False)
    run = torch.ops.quantized.conv2d_relu if relu else torch.ops.quantized.conv2d
    with engine():
        packed = torch.ops.quantized.conv2d_prepack(
            w, torch.from_numpy(bias), g["stride"], g["padding"], g["dilation"], g["groups"]
        )
        return np.asarray(run(x, packed, float(scale), zero_point).int_repr())


def linear(x: Any, w: Any, bias: np.ndarray, scale: Any, zero_point: int) -> np.ndarray:
    with engine():
        packed = torch.ops.quantized.linear_prepack(w, torch.from_numpy(bias))
        result = torch.ops.quantized.linear(x, packed, float(scale), zero_point)
        return np.asarray(result.int_repr())


def add(a: Any, b: Any, scale: Any, zero_point: int, relu: bool = False) -> np.ndarray:
    run = torch.ops.quantized.add_relu if relu else torch.ops.quantized.add
    with engine():
        return np.asarray(run(a, b, float(scale), zero_point).int_repr())


def apply(function: Any, x: Any, *arguments: Any) -> np.ndarray:
    with engine():
        return np.asarray(function(x, *arguments).int_repr())


def nhwc(stored: np.ndarray) -> np.ndarray:
    """uint8 NCHW (or (n, k)) → int8 NHWC."""
    values = (stored.astype(np.int16) - 128).astype(np.int8)
    if values.ndim == 2:
        return values.reshape(values.shape[0], 1, 1, values.shape[1])
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1))
