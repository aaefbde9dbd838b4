"""Small networks with every operator, for `tests/verify/tiny.py:FUNCTION`."""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel


class Tiny(nn.Module):
    """(n, 3, 8, 8) → (n, 10): every operator that the NPU has, in seven layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3, padding=1)
        self.relu = nn.ReLU()
        self.depthwise = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.pool = nn.MaxPool2d(2)
        self.point = nn.Conv2d(12, 20, 1)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(20, 10)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        a = self.relu(self.conv(x))
        b = self.pool(self.depthwise(a) + a)
        y: Tensor = self.fc(torch.flatten(self.average(self.point(b)), 1))
        return y


def tiny() -> tuple[nn.Module, Tensor]:
    """Every operator, with one random image."""
    torch.manual_seed(3)
    return Tiny(), torch.randn(1, 3, 8, 8)


def linear() -> tuple[nn.Module, Tensor]:
    """One layer."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(24, 9)), torch.randn(1, 24)


def labelled() -> SourceModel:
    """One layer with a test split of 40 samples, labelled by the float model itself."""
    module, example = linear()
    images = np.random.default_rng(5).standard_normal((40, 24)).astype(np.float32)
    with torch.no_grad():
        labels = module(torch.from_numpy(images)).argmax(1).numpy()
    return SourceModel(
        name="labelled",
        float_module=module,
        example_inputs=(example.numpy(),),
        input_names=("input",),
        calibration=(images,),
        test_inputs=images,
        test_labels=labels,
    )


def pair() -> tuple[nn.Module, Tensor]:
    """Two layers, "0" and "1"."""
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3)), torch.randn(1, 8, 5, 5)


def log_softmax() -> tuple[nn.Module, Tensor]:
    """An operator that has no integer definition, "1", between two that have one."""
    torch.manual_seed(2)
    layers = nn.Conv2d(3, 8, 3), nn.LogSoftmax(1), nn.Conv2d(8, 8, 3)
    return nn.Sequential(*layers), torch.randn(1, 3, 7, 7)


def integers() -> tuple[nn.Module, Tensor]:
    """An input of an unsupported dtype."""
    return nn.Sequential(nn.Linear(24, 9)), torch.ones(1, 24, dtype=torch.int16)


class Leaving(nn.Linear):
    """A module whose forward ends the process, as if all had gone well."""

    def forward(self, x: Tensor) -> Tensor:
        """No value."""
        raise SystemExit(0)


def leaving() -> tuple[nn.Module, Tensor]:
    """A model that calls sys.exit(0) when it runs."""
    return nn.Sequential(Leaving(24, 9)), torch.zeros(1, 24)


def talking() -> tuple[nn.Module, Tensor]:
    """A file that prints on stdout, and then makes a model."""
    sys.stdout.write("talking\n")
    return linear()
