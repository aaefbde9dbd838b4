"""Small float networks, quantized by PyTorch, for the compiler's tests.

`CASES` are networks of which every layer has an integer form. `quantized` runs post-training
quantization on seeded data, `legalized_output` runs a legalized module on TVM's own CPU code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import tvm
from torch import nn

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.quantize import qnnpack_engine, quantize
from accelsim.reference.executable import UNOPTIMIZED, machine_of

Shape = tuple[int, ...]


class Residual(nn.Module):
    """Two convolutions and a shortcut: the stem has two consumers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1)
        self.left = nn.Conv2d(12, 12, 3, padding=1)
        self.right = nn.Conv2d(12, 12, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 3, h, w) → (n, 12, h, w)."""
        x = torch.relu(self.stem(x))
        return torch.relu(x + self.right(torch.relu(self.left(x))))


class SumOfTwo(nn.Module):
    """A convolution added to itself, then to its input's convolution, without activations."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 4, h, w) → (n, 4, h, w)."""
        y = self.conv(x)
        return y + y


class ClampWithTwoReaders(nn.Module):
    """ReLU6 of a tensor that is read elsewhere too, so that its producer cannot absorb it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.clamp = nn.ReLU6()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 3, h, w) → (n, 8, h - 2, w - 2)."""
        y = self.conv(x)
        return y + self.clamp(y)


class LogSoftmax(nn.Module):
    """An operator that the NPU lacks, between two that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, 8, 3)
        self.gate = nn.LogSoftmax(1)
        self.after = nn.Conv2d(8, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 3, h, w) → (n, 8, h - 4, w - 4)."""
        return self.after(self.gate(self.before(x)))


def _conv(*args: Any, **options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Conv2d(*args, **options))


def _sequence(*makers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*[make() for make in makers])


def _to_eight() -> nn.Module:
    return nn.Conv2d(3, 8, 3)


CASES: dict[str, tuple[Callable[[], nn.Module], Shape]] = {
    "conv": (_conv(3, 8, 3), (2, 3, 9, 7)),
    "conv without bias": (_conv(5, 9, (3, 1), bias=False), (1, 5, 9, 7)),
    "strided padded conv": (_conv(3, 8, (5, 3), stride=(2, 3), padding=(2, 1)), (1, 3, 17, 19)),
    "dilated conv": (_conv(4, 6, 3, dilation=(2, 1), padding=2), (2, 4, 11, 9)),
    "large kernel": (_conv(3, 8, 11, stride=4, padding=2), (1, 3, 31, 31)),
    "grouped conv": (_conv(8, 12, 3, groups=4, padding=1), (1, 8, 6, 6)),
    "depthwise conv": (_conv(16, 16, 3, groups=16, padding=1), (1, 16, 8, 8)),
    "depthwise 5×5 stride 2": (_conv(9, 9, 5, groups=9, stride=2), (1, 9, 13, 12)),
    "depthwise with multiplier": (_conv(6, 12, 3, groups=6), (1, 6, 8, 8)),
    "conv and batch norm and relu": (
        _sequence(_to_eight, lambda: nn.BatchNorm2d(8), nn.ReLU),
        (2, 3, 8, 8),
    ),
    "conv over one axis": (
        _sequence(lambda: nn.Conv1d(5, 9, 4, stride=2, dilation=2, padding=3), nn.ReLU),
        (2, 5, 21),
    ),
    "conv over one axis in groups": (
        _sequence(lambda: nn.Conv1d(6, 9, 3, groups=3, padding=1)),
        (2, 6, 15),
    ),
    "transposed conv": (
        _sequence(lambda: nn.ConvTranspose2d(5, 9, 3, 2, 1, output_padding=1)),
        (2, 5, 7, 6),
    ),
    "transposed conv in groups": (
        _sequence(lambda: nn.ConvTranspose2d(6, 4, (3, 2), (2, 3), groups=2, dilation=2)),
        (1, 6, 7, 6),
    ),
    "transposed conv over one axis": (
        _sequence(lambda: nn.ConvTranspose1d(5, 3, 4, 3, 1)),
        (1, 5, 12),
    ),
    "linear of rows": (_sequence(lambda: nn.Linear(37, 11), nn.ReLU), (3, 5, 37)),
    "linear": (_sequence(lambda: nn.Linear(37, 11)), (3, 37)),
    "linear without bias": (_sequence(lambda: nn.Linear(8, 8, bias=False), nn.ReLU), (1, 8)),
    "flattened map": (
        _sequence(_to_eight, nn.Flatten, lambda: nn.Linear(8 * 4 * 5, 10)),
        (2, 3, 6, 7),
    ),
    "max pool": (_sequence(_to_eight, lambda: nn.MaxPool2d(3, 2, 1)), (2, 3, 11, 12)),
    "max pool with overhang": (
        _sequence(_to_eight, lambda: nn.MaxPool2d(3, 2, ceil_mode=True)),
        (1, 3, 10, 12),
    ),
    "average pool": (_sequence(_to_eight, lambda: nn.AvgPool2d(3, 2, 1)), (2, 3, 11, 12)),
    "global average pool": (
        _sequence(_to_eight, lambda: nn.AdaptiveAvgPool2d(1), nn.Flatten),
        (2, 3, 9, 13),
    ),
    "pools over one axis": (
        _sequence(lambda: nn.Conv1d(3, 8, 3), lambda: nn.MaxPool1d(3, 2), lambda: nn.AvgPool1d(2)),
        (2, 3, 21),
    ),
    "adaptive average pool": (
        _sequence(_to_eight, lambda: nn.AdaptiveAvgPool2d((2, 3))),
        (1, 3, 10, 14),
    ),
    "relu6": (_sequence(_to_eight, nn.ReLU6, lambda: nn.Conv2d(8, 4, 1)), (1, 3, 7, 7)),
    "relu6 of the input": (_sequence(nn.ReLU6, _to_eight), (1, 3, 7, 7)),
    "residual": (Residual, (2, 3, 8, 8)),
    "sum": (SumOfTwo, (1, 4, 6, 6)),
    "clamp with two readers": (ClampWithTwoReaders, (1, 3, 7, 7)),
}


def quantized(
    module: nn.Module, shape: Shape, *, seed: int = 1, per_channel: bool = False
) -> QuantizedModel:
    """`module` with seeded weights, calibrated on seeded data of `shape`."""
    torch.manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0.02, 0.3)
    batches = tuple(inputs(shape, seed + index) for index in range(3))
    source = SourceModel("test", module.eval(), (batches[0],), ("x",), calibration=batches)
    return quantize(source, per_channel=per_channel)


def inputs(shape: Shape, seed: int) -> np.ndarray:
    """Data that leave the calibrated range now and then."""
    values = np.random.default_rng(seed).normal(0.3, 1.2, shape)
    return values.astype(np.float32)


def torch_output(model: QuantizedModel, x: np.ndarray) -> np.ndarray:
    """What PyTorch's qnnpack kernels give, as float32."""
    assert model.torch_int8 is not None
    with qnnpack_engine(), torch.no_grad():
        return np.asarray(model.torch_int8(torch.from_numpy(x)).numpy())


def legalized_output(module: Any, x: np.ndarray) -> np.ndarray:
    """What a module gives on TVM's own CPU code."""
    machine = machine_of(module, UNOPTIMIZED)
    result = machine["main"](tvm.runtime.tensor(x))
    first = result if isinstance(result, tvm.runtime.Tensor) else result[0]
    return np.asarray(first.numpy())
