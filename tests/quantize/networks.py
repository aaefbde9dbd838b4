"""Small untrained networks for the tests of quantization."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from accelsim.artifacts import SourceModel


class Block(nn.Module):
    """A bottleneck with ReLU6 inside and a sum without activation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.relu6 = nn.ReLU6()
        self.project = nn.Conv2d(channels, channels, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.project(self.relu6(self.bn(self.conv(x))))


class Residual(nn.Module):
    """Two blocks, a sum with ReLU, pools, dropout, flatten and a linear layer."""

    def __init__(self, dropout: bool = True) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
        self.one = Block(12)
        self.two = Block(12)
        self.dropout = nn.Dropout(0.5) if dropout else None
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(12, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        hidden = self.stem(image)
        hidden = self.two(self.one(hidden))
        hidden = torch.relu(hidden + hidden)
        if self.dropout is not None:
            hidden = self.dropout(hidden)
        hidden = self.pool(hidden)
        return self.fc(torch.flatten(functional.adaptive_avg_pool2d(hidden, 1), 1))


class CalledTwice(nn.Module):
    """One convolution called twice, the second time with a ReLU behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding="same")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.conv(self.conv(x)))


class LogSoftmaxTail(nn.Module):
    """A float operator behind the last quantized one."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.fc(x), 1)


class Branching(nn.Module):
    """Control flow that depends on values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if bool(x.sum() > 0) else -x


class Unknown(nn.Module):
    """A function that has neither a converter nor a decomposition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mode(x, 2)[0]


class OneSidedClamp(nn.Module):
    """A clamp that PyTorch's quantized kernels refuse as it is."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x, min=0.5)


class EvenSame(nn.Module):
    """A padding that differs between two sides."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 2, padding="same")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def images(batch: int, seed: int = 0) -> np.ndarray:
    """(batch, 3, 8, 8) float32 of both signs."""
    return np.random.default_rng(seed).normal(size=(batch, 3, 8, 8)).astype(np.float32)


def source_of(module: nn.Module, example: np.ndarray, name: str = "x") -> SourceModel:
    """A SourceModel that calibrates with its example."""
    return SourceModel("test", module.eval(), (example,), (name,), calibration=(example,))


def residual(batch: int = 1, dropout: bool = True) -> SourceModel:
    """The residual network with seeded weights and uneven batch norms."""
    torch.manual_seed(3)
    module = Residual(dropout)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = torch.randn(12) * 0.3
            layer.running_var = torch.rand(12) + 0.2
    source = source_of(module, images(batch), "image")
    return SourceModel(
        "test", source.float_module, (images(batch),), ("image",), calibration=(images(16, 1),)
    )
