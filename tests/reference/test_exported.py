"""PyTorch's float kernels of one layer are read from the exported graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.quantize import quantize
from accelsim.reference import build
from accelsim.reference.exported import build_exported
from accelsim.reference.integer import Reference


@pytest.fixture(scope="module")
def model() -> QuantizedModel:
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(6, 20), nn.SiLU(), nn.LayerNorm(20), nn.Linear(20, 3)).eval()
    batch = np.random.default_rng(2).standard_normal((40, 6)).astype(np.float32)
    return quantize(SourceModel("m", module, (batch,), ("x",), calibration=(batch,)))


@pytest.fixture(scope="module")
def reference(model: QuantizedModel) -> Reference:
    return build(model)


def inputs_of(reference: Reference, name: str) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(5)
    shapes = reference.network.layer(name).input_shapes
    return tuple(rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)


@pytest.mark.parametrize("name", ["1", "2"])
def test_float_kernels_are_within_a_step_of_the_integers(
    model: QuantizedModel, reference: Reference, name: str
) -> None:
    golden = build_exported(model, reference.network)
    layer, inputs = reference.network.layer(name), inputs_of(reference, name)
    assert golden.covers(layer)
    exact = reference.run_layer(name, inputs).astype(np.int16)
    apart = np.abs(golden.run_layer(layer, inputs) - exact)
    assert np.unique(exact).size >= 16 and apart.max() <= 1 and (apart > 0).mean() < 0.01
    steps = np.clip(golden.steps(layer, inputs), -128, 127).reshape(exact.shape)
    assert np.abs(steps - exact).max() < 0.51


def test_a_model_without_an_exported_graph_has_no_float_golden(reference: Reference) -> None:
    class Model:
        exported = None

    golden = build_exported(Model(), reference.network)  # type: ignore[arg-type]
    assert not any(golden.covers(layer) for layer in reference.layers)
