"""Quantized PyTorch tensors from integers.

What comes in: stored integers with scale and zero point. What goes out: a quantized tensor. It must
not know layers.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from accelsim.reference.network import QuantizedTensor

SHIFT = 128  # qnnpack takes quint8: the int8 domain moved by an exact change of zero point


def quantized_tensor(stored: np.ndarray, scale: np.float32, zero_point: int) -> Any:
    """int8 or uint8 in PyTorch's layout → a per-tensor quantized tensor of the same values."""
    make: Any = torch._make_per_tensor_quantized_tensor
    with warnings.catch_warnings():  # PyTorch announces the end of quantized tensors once a process
        warnings.simplefilter("ignore", UserWarning)
        return make(torch.from_numpy(stored), float(scale), zero_point)


def torch_target(output: QuantizedTensor) -> tuple[float, int]:
    """Scale and zero point for a kernel that writes quint8."""
    return float(output.scale), output.zero_point + SHIFT
