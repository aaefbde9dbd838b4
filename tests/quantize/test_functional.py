"""Functional convolutions are quantized however their arguments are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel
from accelsim.quantize import quantize, torch_layer_outputs
from accelsim.reference import build


class Functional(nn.Module):
    """One functional convolution with a weight of its own."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3, 3))
        self.arguments, self.keywords = arguments, keywords

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv2d(x, self.weight, *self.arguments, **self.keywords)


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((), {}),
        ((None, 1, 1), {}),
        ((), {"padding": 1, "stride": (2, 1)}),
        ((None,), {"dilation": [1, 2], "padding": "valid"}),
    ],
)
def test_functional_convolution_equals_pytorch(
    arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    torch.manual_seed(1)
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    model = quantize(SourceModel("f", Functional(arguments, keywords).eval(), (x,), ("x",), (x,)))
    built = build(model)
    (layer,) = built.layers
    values = built.run(built.quantize_inputs({model.input_names[0]: x}))[layer.output]
    stored = torch_layer_outputs(model, (x,))[layer.output]
    np.testing.assert_array_equal(values, (stored.astype(int) - 128).transpose(0, 2, 3, 1))
    assert len(np.unique(values)) > 16
