"""Modules that move elements: from PyTorch to the simulator, every layer against the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from accelsim.artifacts import Launch, SourceModel
from accelsim.codegen.placement import place
from accelsim.emit import compile_region, launch_memory, read_tensor
from accelsim.quantize import layer_members, quantize
from accelsim.reference import build, build_torch
from accelsim.simulate import run as simulate
from accelsim.spec.config import CONFIGS

Body = Callable[[Any, Any], Any]
SHAPE = (2, 4, 6, 8)


class Moves(nn.Module):
    """Two convolutions around a movement of a map of 8 channels."""

    def __init__(self, body: Body, channels: int) -> None:
        """`channels` are those of the moved map."""
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, padding=1)
        self.side = nn.Conv2d(4, 6, 1)
        self.last = nn.Conv2d(channels, 5, 1)
        self.body = body

    def forward(self, x: Any) -> Any:
        """The movement has both maps."""
        return self.last(self.body(self.first(x), self.side(x)))


def shuffled(a: Any, _: Any) -> Any:
    n, c, h, w = a.shape
    return a.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def rolled(a: Any, _: Any) -> Any:
    return torch.roll(a, 1, 2)


def swapped(a: Any, _: Any) -> Any:
    first, second = a.chunk(2, 1)
    return torch.cat([second, first], 1)


BODIES: dict[str, tuple[Body, int]] = {
    "pad": (lambda a, _: functional.pad(a, (1, 2, 0, 1)), 8),
    "replicated": (lambda a, _: functional.pad(a, (1, 1, 1, 1), mode="replicate"), 8),
    "concat": (lambda a, b: torch.cat([a, b], 1), 14),
    "slices": (lambda a, _: a[:, :, ::2, 1:], 8),
    "from_the_end": (lambda a, _: a[:, 2:5, -3:, :-1], 3),
    "swapped": (swapped, 8),
    "shuffled": (shuffled, 8),
    "rolled": (rolled, 8),
    "stacked": (lambda a, _: torch.stack([a, a], 2).flatten(1, 2), 16),
    "pixel_shuffle": (lambda a, _: functional.pixel_shuffle(a, 2), 2),
    "pixel_unshuffle": (lambda a, _: functional.pixel_unshuffle(a, 2), 32),
    "tiled": (lambda a, _: a.repeat(1, 2, 1, 2), 16),
    "repeated": (lambda a, _: torch.repeat_interleave(a, 2, 1), 16),
    "spread": (lambda a, _: a.mean((2, 3), keepdim=True).expand(-1, -1, 3, 4), 8),
    "flipped": (lambda a, _: torch.flip(a, [3]), 8),
    "nearest": (lambda a, _: functional.interpolate(a, scale_factor=2.0), 8),
    "odd_nearest": (lambda a, _: functional.interpolate(a, size=(7, 9)), 8),
    "fractional": (lambda a, _: functional.interpolate(a, scale_factor=1.7), 8),
    "bilinear": (lambda a, _: functional.interpolate(a, scale_factor=2.0, mode="bilinear"), 8),
    "thirds": (lambda a, _: functional.interpolate(a, size=(18, 24), mode="bilinear"), 8),
    "turned": (lambda a, _: a.permute(0, 1, 3, 2), 8),
    "selected": (lambda a, _: a[:, :, 2].unsqueeze(2), 8),
}


@pytest.mark.parametrize("name", BODIES)
def test_every_layer_on_the_simulator_is_that_of_the_reference(name: str) -> None:
    """Nothing but the edges stays on the host, and the network is PyTorch's."""
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    source = SourceModel(name, Moves(*BODIES[name]).eval(), (x,), ("x",), calibration=(x,))
    model = quantize(source)
    reference = build(model, optimization=0)
    values = reference.run(reference.quantize_inputs({"x": x}))
    placed = place(model, CONFIGS["edge8"], layer_members(model.qdq), compile_region)
    host = [one for one in placed.legalized.host_ops if not one.boundary]
    assert not host
    compared = 0
    for program in placed.programs:
        inputs = {tensor: values[tensor] for tensor in program.inputs}
        result = simulate(Launch(program, launch_memory(program, inputs)))
        assert result.error_code == 0
        for layer in program.layers:
            found = read_tensor(program, result.dram, layer.output)
            np.testing.assert_array_equal(found, values[layer.output], layer.name)
            compared += found.size
    assert compared > 1000
    torch_golden = build_torch(model, reference.network)
    for tensor, expected in torch_golden.isolated(values).tensors.items():
        np.testing.assert_array_equal(values[tensor], expected, tensor)


@pytest.mark.parametrize("name", ["odd_nearest", "fractional", "nearest"])
def test_the_network_in_floats_takes_the_pixels_that_pytorch_takes(name: str) -> None:
    """TVM's importer alone takes a nearest resize for one about pixel centres."""
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    module = Moves(*BODIES[name]).eval()
    model = quantize(SourceModel(name, module, (x,), ("x",), calibration=(x,)))
    reference = build(model, optimization=0)
    values = reference.run(reference.quantize_inputs({"x": x}))
    (found,) = reference.dequantize_outputs(values)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    assert np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
