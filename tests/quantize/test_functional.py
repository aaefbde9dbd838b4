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


class Named(nn.Module):
    """Layers that are called by their argument's name, or by its place."""

    def __init__(self, named: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.conv, self.act, self.fc = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Linear(6, 5)
        self.named = named

    def forward(self, x: Tensor) -> Tensor:
        if self.named:
            return self.fc(input=self.act(input=self.conv(input=x)))
        return self.fc(self.act(self.conv(x)))


def test_layers_called_by_the_name_of_their_argument_are_quantized_alike() -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    both = [
        quantize(SourceModel("n", Named(named).eval(), (x,), ("x",), (x,)))
        for named in (True, False)
    ]
    assert both[0].layer_names == both[1].layer_names
    outputs = [torch_layer_outputs(model, (x,)) for model in both]
    assert outputs[0].keys() == outputs[1].keys()
    for name, values in outputs[1].items():
        np.testing.assert_array_equal(outputs[0][name], values)
