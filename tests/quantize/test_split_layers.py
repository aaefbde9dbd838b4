"""Facts about exported programs whose quantizer left moves and pools without quantize."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.quantize import quantize
from accelsim.quantize.split_layers import split_layers
from tests.quantize import resnet_forms as forms

_OPS = torch.ops.quantized_decomposed


class Chain(nn.Module):
    """Quantize, then a chain of operators that nothing quantizes, then quantize again."""

    def __init__(self, chain: nn.Module, scale: float = 0.05) -> None:
        super().__init__()
        self.chain, self.scale = chain, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for scale, zero, run in ((0.03, 7, self.chain), (self.scale, -9, nn.Identity())):
            levels = _OPS.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
            x = run(_OPS.dequantize_per_tensor(levels, scale, zero, -128, 127, torch.int8))
        return x


def exported(*chain: nn.Module) -> torch.export.ExportedProgram:
    return torch.export.export(Chain(nn.Sequential(*chain)).eval(), (forms.images(1),))


CHAINS = {
    "pool, average, flatten": (nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Flatten()),
    "average, flatten": (nn.AvgPool2d(2), nn.Flatten()),
    "relu, flatten, unflatten": (nn.ReLU(), nn.Flatten(), nn.Unflatten(1, (3, 64))),
    "dropout, pool": (nn.Dropout(0.5), nn.MaxPool2d(2)),
    "pool, dropout, relu": (nn.MaxPool2d(2), nn.Dropout(0.5), nn.ReLU()),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_split_programs_compute_the_same_values(chain: tuple[nn.Module, ...]) -> None:
    program = exported(*chain)
    before = program.graph_module.code
    split = split_layers(program)
    assert split is not program
    assert program.graph_module.code == before
    for seed in range(3):
        image = forms.images(1, seed) * 2
        expected, found = program.module()(image), split.module()(image)
        assert len(expected.unique()) > 5
        assert torch.equal(expected, found)


def test_every_operator_of_a_chain_is_a_layer() -> None:
    program = exported(*CHAINS["pool, average, flatten"])
    source = SourceModel("m", program, (forms.images(1).numpy(),), ("x",), already_quantized=True)
    names = quantize(source).layer_names
    assert names[:2] == ("chain.0", "chain.1")
    assert len(names) >= 3


def test_a_program_with_nothing_to_split_is_returned_as_it_is() -> None:
    program = exported(nn.ReLU())
    assert split_layers(program) is program


def test_split_programs_survive_a_file(tmp_path) -> None:
    split = split_layers(exported(*CHAINS["average, flatten"]))
    torch.export.save(split, tmp_path / "m.pt2")
    image = forms.images(1, 3)
    loaded = torch.export.load(tmp_path / "m.pt2").module()(image).numpy()
    assert np.array_equal(loaded, split.module()(image).numpy())
