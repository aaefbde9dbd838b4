"""Facts about the reference graph with layers switched between float and int8."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accelsim.artifacts import SourceModel
from accelsim.calibrate.switches import Switchboard, switched_layers
from accelsim.quantize.recipe import Recipe
from tests.calibrate.networks import Ending, chain, images, quantized, seeded

X = torch.from_numpy(images(4, seed=3))


def _board(recipe: Recipe | None = None):
    source = chain(spread=2.0)
    network = quantized(source, recipe)
    layers = switched_layers(network)
    return source, network, layers, Switchboard(network, layers)


def _run(board: Switchboard, names, weights_only: bool = False) -> torch.Tensor:
    with torch.no_grad(), board.quantizing(names, weights_only):
        return board.run(X)


def test_layers_are_those_of_the_network_and_its_input() -> None:
    _, network, layers, _ = _board()
    assert [layer.name for layer in layers] == [name.name for name in network.names.quantized]
    weighty = [layer.name for layer in layers if layer.weighty]
    assert weighty == ["first", "depthwise", "grouped", "fc"]


def test_all_on_is_the_quantized_network_and_all_off_the_float_one() -> None:
    source, network, layers, board = _board()
    with torch.no_grad():
        assert torch.equal(_run(board, [layer.name for layer in layers]), network.reference(X))
        assert torch.allclose(_run(board, ()), source.float_module(X), atol=1e-5)
    assert not torch.allclose(network.reference(X), source.float_module(X), atol=1e-3)


def test_switches_leave_the_network_as_it_was() -> None:
    _, network, _, board = _board()
    before = network.reference(X)
    _run(board, ())
    assert torch.equal(network.reference(X), before)


def test_one_layer_on_rounds_its_weights_and_its_output_only() -> None:
    source, _, layers, board = _board()
    (layer,) = [one for one in layers if one.name == "fc"]
    module = source.float_module
    with torch.no_grad():
        y = module.relu2(module.depthwise(module.relu(module.bn(module.first(X)))))
        hidden = torch.flatten(module.pool(module.relu3(module.grouped(y))), 1)
        (reference,) = layer.modules
        exact = torch.nn.functional.linear(hidden, reference.get_weight(), module.fc.bias)
    assert torch.allclose(_run(board, ["fc"], weights_only=True), exact, atol=1e-5)
    scale, zero = layer.quantize.args[1:3]
    rounded = ((exact / scale).round() + zero).clamp(0, 255).sub(zero) * scale
    found = _run(board, ["fc"])
    assert float((found - rounded).abs().max()) <= scale * 1.001
    assert float((found != rounded).float().mean()) < 0.1  # ties of two ways to add up


@pytest.mark.parametrize("per_channel", [False, True])
def test_both_kinds_of_weight_scales_can_be_switched(per_channel: bool) -> None:
    source, _, _, board = _board(Recipe(per_channel=per_channel))
    assert torch.allclose(_run(board, ()), source.float_module(X), atol=1e-5)


def test_values_of_layers_have_their_names() -> None:
    _, network, layers, board = _board()
    with board.quantizing([layer.name for layer in layers]):
        values = board.values_of((X,))
    assert set(values) == {layer.name for layer in layers}
    assert torch.equal(values["fc"], network.reference(X))


def test_float_operators_behind_the_last_layer_belong_to_a_layer_without_quantize() -> None:
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    source = SourceModel("e", seeded(Ending), (x[:1],), ("x",), calibration=(x,))
    layers = switched_layers(quantized(source))
    assert layers[-1].quantize is None and layers[-1].name == "log_softmax"
