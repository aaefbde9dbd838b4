"""One definition of the boundary: rint(x · (1/scale)) + zero point, in all that quantize inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accelsim.artifacts import SourceModel
from accelsim.legalize import legalize
from accelsim.quantize import quantize
from accelsim.reference import build, build_torch, build_tvm
from tests.legalize.networks import legalized_output

SHAPE = (1, 4, 16, 16)


@pytest.mark.parametrize("reach", [0.7, 1.9, 3.3])
def test_inputs_on_ties_are_quantized_alike_by_library_reference_and_goldens(reach: float) -> None:
    """A pool over four equal elements, so that what comes out is what the boundary made."""
    calibration = np.linspace(-reach, 2 * reach, 1024, dtype=np.float32).reshape(SHAPE)
    pool = torch.nn.Sequential(torch.nn.MaxPool2d(2))
    model = quantize(SourceModel("m", pool, (calibration,), ("x",), calibration=(calibration,)))
    reference = build(model)
    name = model.input_names[0]
    tensor = reference.network.tensors[reference.network.boundary[0]]
    steps = np.resize(np.arange(-140, 141) + 0.5, (1, 4, 8, 8)).astype(np.float32)
    x = (steps * tensor.scale).repeat(2, axis=2).repeat(2, axis=3)
    inverse = np.float32(1) / tensor.scale
    assert np.any(np.rint(x * inverse) != np.rint(x / tensor.scale))
    levels = np.clip(np.rint(x * inverse) + tensor.zero_point, -128, 127)
    expected = levels.astype(np.int8).transpose(0, 2, 3, 1)
    pooled = expected[:, ::2, ::2]

    inputs = reference.quantize_inputs({name: x})
    np.testing.assert_array_equal(inputs[tensor.name], expected)
    output = reference.layers[0].output
    for golden in (build_torch(model, reference.network), build_tvm(model, reference.network)):
        tensors = golden.accumulated({name: x}).tensors
        np.testing.assert_array_equal(tensors[output], pooled)
    floats = (levels[..., ::2, ::2] - tensor.zero_point).astype(np.float32) * tensor.scale
    np.testing.assert_array_equal(legalized_output(legalize(model).module, x), floats)
