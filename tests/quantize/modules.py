"""Modules of PyTorch's by name, and functions that nothing converts.

Each takes the (1, 8, 6, 6) result of a convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Recurrent(nn.Module):
    """A recurrent network over channels."""

    def __init__(self, kind: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.inner = kind(36, 5, batch_first=True, **options)

    def forward(self, x: torch.Tensor) -> Any:
        """(n, 8, 6, 6) → (n, 8, 5)."""
        return self.inner(x.flatten(2))[0]


class Cell(nn.Module):
    """One step of a recurrent network."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.inner = kind(288, 5)

    def forward(self, x: torch.Tensor) -> Any:
        """(n, 8, 6, 6) → (n, 5)."""
        result = self.inner(x.flatten(1))
        return result[0] if isinstance(self.inner, nn.LSTMCell) else result


class Attention(nn.Module):
    """PyTorch's attention of channels to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(36, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        """(n, 8, 6, 6) → (n, 8, 36)."""
        rows = x.flatten(2)
        return self.inner(rows, rows, rows, need_weights=False)[0]


class Token(nn.Module):
    """A learned row in front of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.linspace(-1, 1, 36).reshape(1, 1, 36))

    def forward(self, x: torch.Tensor) -> Any:
        """(n, 8, 6, 6) → (n, 9, 36)."""
        return torch.cat([self.row.expand(x.shape[0], -1, -1), x.flatten(2)], 1)


def modules() -> dict[str, nn.Module]:
    """By name."""
    return {
        "ReLU": nn.ReLU(),
        "ReLU6": nn.ReLU6(),
        "LeakyReLU": nn.LeakyReLU(),
        "PReLU": nn.PReLU(8),
        "PReLU1": nn.PReLU(),
        "ELU": nn.ELU(),
        "SELU": nn.SELU(),
        "CELU": nn.CELU(),
        "GELU": nn.GELU(),
        "GELUt": nn.GELU("tanh"),
        "Mish": nn.Mish(),
        "SiLU": nn.SiLU(),
        "Softplus": nn.Softplus(),
        "Softsign": nn.Softsign(),
        "Softshrink": nn.Softshrink(),
        "Hardshrink": nn.Hardshrink(),
        "Tanhshrink": nn.Tanhshrink(),
        "Threshold": nn.Threshold(0.1, 0.2),
        "Hardtanh": nn.Hardtanh(),
        "Hardswish": nn.Hardswish(),
        "Hardsigmoid": nn.Hardsigmoid(),
        "Sigmoid": nn.Sigmoid(),
        "LogSigmoid": nn.LogSigmoid(),
        "Tanh": nn.Tanh(),
        "GLU": nn.GLU(1),
        "Softmax": nn.Softmax(1),
        "Softmax2d": nn.Softmax2d(),
        "Softmin": nn.Softmin(1),
        "LogSoftmax": nn.LogSoftmax(1),
        "BatchNorm2d": nn.BatchNorm2d(8),
        "BN_noaff": nn.BatchNorm2d(8, affine=False),
        "LayerNorm": nn.LayerNorm(6),
        "LayerNormNoBias": nn.LayerNorm(6, bias=False),
        "LayerNormNoAff": nn.LayerNorm(6, elementwise_affine=False),
        "LayerNorm3": nn.LayerNorm([8, 6, 6]),
        "GroupNorm": nn.GroupNorm(2, 8),
        "GroupNormNoAff": nn.GroupNorm(2, 8, affine=False),
        "InstanceNorm": nn.InstanceNorm2d(8),
        "InstanceNormAff": nn.InstanceNorm2d(8, affine=True),
        "InstanceNormTrack": nn.InstanceNorm2d(8, affine=True, track_running_stats=True),
        "LRN": nn.LocalResponseNorm(2),
        "RMSNorm": nn.RMSNorm(6),
        "MaxPool": nn.MaxPool2d(2),
        "MaxPoolCeil": nn.MaxPool2d(3, 2, 1, ceil_mode=True),
        "MaxPoolDil": nn.MaxPool2d(2, 1, dilation=2),
        "AvgPool": nn.AvgPool2d(2),
        "AvgPoolDiv": nn.AvgPool2d(2, divisor_override=3),
        "AvgPoolDivPad": nn.AvgPool2d(3, 2, 1, divisor_override=3),
        "AvgPoolCeil": nn.AvgPool2d(4, 3, ceil_mode=True),
        "AvgPoolCeilPad": nn.AvgPool2d(3, 2, 1, ceil_mode=True),
        "LPPool": nn.LPPool2d(2, 2),
        "AdMax": nn.AdaptiveMaxPool2d(3),
        "AdMaxUneven": nn.AdaptiveMaxPool2d(4),
        "AdMax5": nn.AdaptiveMaxPool2d((5, 2)),
        "AdAvg": nn.AdaptiveAvgPool2d(4),
        "ConstPad": nn.ConstantPad2d(1, 3.0),
        "ZeroPad": nn.ZeroPad2d(1),
        "ReflPad": nn.ReflectionPad2d(1),
        "ReplPad": nn.ReplicationPad2d(1),
        "CircPad": nn.CircularPad2d(1),
        "Upsample": nn.Upsample(scale_factor=2),
        "UpBilin": nn.Upsample(scale_factor=2, mode="bilinear"),
        "UpBicubic": nn.Upsample(scale_factor=2, mode="bicubic"),
        "PixelShuffle": nn.PixelShuffle(2),
        "PixelUnshuffle": nn.PixelUnshuffle(2),
        "ChannelShuffle": nn.ChannelShuffle(2),
        "Flatten": nn.Flatten(),
        "Unflatten": nn.Unflatten(1, (2, 4)),
        "Fold": nn.Sequential(nn.Unfold(2), nn.Fold((6, 6), 2)),
        "Unfold": nn.Unfold(3),
        "ConvT": nn.ConvTranspose2d(8, 4, 2, 2),
        "Linear": nn.Linear(6, 5),
        "Conv1d": nn.Sequential(nn.Flatten(2), nn.Conv1d(8, 4, 3)),
        "ConvReflect": nn.Conv2d(8, 4, 3, padding=1, padding_mode="reflect"),
        "LSTM": Recurrent(nn.LSTM),
        "LSTM_both_ways": Recurrent(nn.LSTM, bidirectional=True),
        "GRU": Recurrent(nn.GRU),
        "RNN": Recurrent(nn.RNN),
        "LSTMCell": Cell(nn.LSTMCell),
        "GRUCell": Cell(nn.GRUCell),
        "RNNCell": Cell(nn.RNNCell),
        "MultiheadAttention": Attention(),
        "token": Token(),
    }


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "copysign": lambda x: torch.copysign(x, x),
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5)),
    "cummax": lambda x: x.cummax(2)[0],
    "mode": lambda x: x.mode(2)[0],
    "quantile": lambda x: x.quantile(0.5, dim=2),
    "cdist": lambda x: torch.cdist(x.flatten(2), x.flatten(2)),
    "kthvalue": lambda x: x.kthvalue(2, 1)[0],
    "scatter_add": lambda x: torch.zeros_like(x).scatter_add(
        1, torch.zeros(1, 8, 6, 6, dtype=torch.long), x
    ),
    "index_add": lambda x: torch.zeros_like(x).index_add(1, torch.tensor([0, 1]), x[:, :2]),
    "index_copy": lambda x: x.index_copy(1, torch.tensor([0]), x[:, 1:2]),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([0]), 0.5),
    "fft": lambda x: torch.fft.fft(x).real,
    "inverse": lambda x: torch.linalg.inv(x + 10 * torch.eye(6)),
    "det": lambda x: torch.linalg.det(x),
    "svd": lambda x: torch.linalg.svdvals(x),
    "qr": lambda x: torch.linalg.qr(x)[0],
    "grid_sample": lambda x: nn.functional.grid_sample(x, torch.zeros(1, 3, 3, 2)),
}
