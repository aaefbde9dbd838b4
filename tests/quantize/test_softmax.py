"""Every form of softmax in PyTorch has an output in steps of 1/256, and keeps its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel
from accelsim.legalize import legalize
from accelsim.quantize import quantize


class Head(nn.Module):
    """A convolution, a softmax over channels, a convolution."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 9, 1), nn.Conv2d(9, 4, 1)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.function(self.first(x) * 2.0))
        return result


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: torch.softmax(x, 1), "softmax"),
        (lambda x: nn.functional.softmax(x, dim=1), "softmax"),
        (lambda x: x.softmax(dim=1), "softmax"),
        (nn.Softmax(1), "function"),
    ],
    ids=["torch", "functional", "method", "module"],
)
def test_softmax_ends_in_steps_of_1_256(function: Any, name: str) -> None:
    batch = np.random.default_rng(0).standard_normal((1, 3, 4, 5)).astype(np.float32)
    module = Head(function).eval()
    model = quantize(SourceModel("head", module, (batch,), ("x",), calibration=(batch,)))
    assert name in model.layer_names
    assert [op.name for op in legalize(model).host_ops if not op.boundary] == []
    with torch.no_grad():
        expected = module(torch.from_numpy(batch)).numpy()
    assert model.torch_int8 is not None
    assert np.abs(model.torch_int8(torch.from_numpy(batch)).numpy() - expected).max() < 0.05
