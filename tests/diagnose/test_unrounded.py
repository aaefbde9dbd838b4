"""The float network of a model that is quantized already."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accelsim.diagnose.inputs import traps
from accelsim.diagnose.unrounded import Unrounded
from accelsim.quantize import quantize
from accelsim.reference.graph import read_network
from tests.diagnose import nets


@pytest.fixture(scope="module")
def unrounded():
    """The quantized classifier, its network and its float run."""
    model = quantize(nets.sound())
    network = read_network(model.qdq, rounding=model.rounding)
    return model, network, Unrounded(model, network)


def test_it_computes_what_torch_does_with_the_quantized_weights(unrounded):
    model, _, network = unrounded
    image = torch.from_numpy(nets.IMAGES[:1])
    plain = nets.module()
    with torch.no_grad():
        for name in ("first", "second", "fc"):
            packed = model.torch_int8.get_submodule(name)
            plain.get_submodule(name).weight.copy_(packed.weight().dequantize())
        first = torch.relu(plain.first(image)).numpy()
        expected = plain(image).numpy()
    (output,), layers = network.run({model.input_names[0]: image.numpy()})
    assert list(layers) == ["x", "first", "second", "flatten", "fc"]
    np.testing.assert_array_equal(layers["x"], image.numpy())
    np.testing.assert_allclose(layers["first"], first, atol=1e-5)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_an_input_of_swapped_axes_is_told_by_the_label_that_it_gives(unrounded):
    model, network, _ = unrounded
    name = model.input_names[0]
    right = nets.IMAGES[:1]
    given = {name: np.ascontiguousarray(right.transpose(0, 1, 3, 2))}
    told = traps(network, given, lambda changed: np.array_equal(changed[name], right))
    assert told == [
        f"with input {name} with height and width swapped, the float model gives the label"
    ]
    assert traps(network, {name: right}, None) == []
