"""Small networks with fixed weights, and samples for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.quantize.fx_graph import FxQuantized, calibrate, convert, prepare
from accelsim.quantize.recipe import Recipe

DEAD = 3  # a channel that `planted` silences


class Chain(nn.Module):
    """Convolution, batch norm, depthwise, pointwise, pool, flatten, linear; ReLU between them."""

    def __init__(self, relu: type[nn.Module] = nn.ReLU, spread: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 8, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.relu = relu()
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.relu2 = nn.ReLU()
        self.grouped = nn.Conv2d(8, 6, 1, groups=2)
        self.relu3 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(6 * 9, 5)
        with torch.no_grad():
            self.bn.weight.mul_(torch.exp2(spread * torch.randn(8)))
            self.bn.bias.normal_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu2(self.depthwise(self.relu(self.bn(self.first(x)))))
        y = self.pool(self.relu3(self.grouped(y)))
        result: torch.Tensor = self.fc(torch.flatten(y, 1))
        return result


class Ending(nn.Module):
    """A residual sum between layers, and a log softmax in float at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.second(torch.relu(self.first(x)) + x), 1)


def seeded(kind: Any, *arguments: Any) -> nn.Module:
    """A module of random weights that are the same every time, in eval mode."""
    torch.manual_seed(5)
    module: nn.Module = kind(*arguments)
    return module.eval()


def images(count: int, seed: int = 0) -> np.ndarray:
    """Samples (count, 2, 6, 6) for `Chain`."""
    values = np.random.default_rng(seed).normal(0, 1, (count, 2, 6, 6))
    return values.astype(np.float32)


def chain(spread: float = 0.0, relu: type[nn.Module] = nn.ReLU) -> SourceModel:
    """`Chain` with calibration data and a test split that the float network gets all right."""
    module = seeded(Chain, relu, spread)
    tests = images(40, seed=1)
    with torch.no_grad():
        labels = module(torch.from_numpy(tests)).argmax(1).numpy()
    return SourceModel(
        name="chain",
        float_module=module,
        example_inputs=(images(1),),
        input_names=("x",),
        calibration=(images(32), images(32, seed=2)),
        test_inputs=tests,
        test_labels=labels,
    )


def planted(layer: str) -> SourceModel:
    """A network in which one layer has a huge weight that reads a channel which is always zero.

    In float it does nothing; in int8 it takes the levels of all other weights.
    """
    source = chain()
    module: Any = source.float_module
    with torch.no_grad():
        if layer == "depthwise":
            module.bn.weight[DEAD], module.bn.bias[DEAD] = 0, -1
            module.depthwise.weight[DEAD] = 40
        else:
            module.depthwise.weight[DEAD], module.depthwise.bias[DEAD] = 0, -1
            module.grouped.weight[0, DEAD] = 40
        scores = module(torch.from_numpy(source.test_inputs))
    assert source.test_labels is not None
    source.test_labels[:] = scores.argmax(1).numpy()
    return source


def quantized(source: SourceModel, recipe: Recipe | None = None) -> FxQuantized:
    """A model quantized on its calibration data, or its example."""
    prepared = prepare(source, recipe or Recipe())
    given = [(batch,) for batch in source.calibration] or [source.example_inputs]
    calibrate(prepared, given)
    return convert(prepared)


def make() -> SourceModel:
    """For `FILE.py:make`."""
    return chain(spread=2.0)


def make_planted() -> SourceModel:
    """One layer of it loses most of the accuracy."""
    return planted("grouped")
