"""Facts about cross-layer equalisation."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from accelsim.calibrate.equalize import equalized, find_pairs
from tests.calibrate.networks import chain, images


def _ranges(module: Any, path: str) -> torch.Tensor:
    """Largest weight that makes each channel, batch norm included for the first layer."""
    weight = module.get_submodule(path).weight.detach().flatten(1).abs().amax(1)
    if path == "first":
        weight = weight * (module.bn.weight / (module.bn.running_var + module.bn.eps).sqrt()).abs()
    return weight


def test_the_float_network_gives_the_same_bits() -> None:
    source = chain(spread=3.0)
    module, pairs = equalized(source.float_module, "chain")
    x = torch.from_numpy(images(16))
    assert pairs and torch.equal(module(x), source.float_module(x))
    assert not torch.equal(module.bn.weight, source.float_module.bn.weight)


def test_pairs_are_found_through_batch_norm_relu_pool_and_flatten() -> None:
    found = [(pair.first, pair.norm, pair.second) for pair in find_pairs(chain().float_module, "c")]
    assert found == [
        ("first", "bn", "depthwise"),
        ("depthwise", None, "grouped"),
        ("grouped", None, "fc"),
    ]


def test_a_factor_does_not_pass_relu6() -> None:
    pairs = find_pairs(chain(relu=nn.ReLU6).float_module, "c")
    assert "first" not in [pair.first for pair in pairs]


def test_ranges_of_channels_end_within_a_factor_of_four_of_what_reads_them() -> None:
    source = chain(spread=3.0)
    module, _ = equalized(source.float_module, "chain")
    reads = module.get_submodule("depthwise").weight.detach().flatten(1).abs().amax(1)
    ratio = _ranges(module, "first") / reads
    ratio = ratio.detach()
    before = _ranges(source.float_module, "first").detach()
    assert float(before.max() / before.min()) > 20
    assert float(ratio.min()) >= 0.5 and float(ratio.max()) <= 2


def test_a_dead_channel_stays_as_it_is() -> None:
    source = chain(spread=3.0)
    with torch.no_grad():
        source.float_module.depthwise.weight[3] = 0
    module, _ = equalized(source.float_module, "chain")
    assert bool(torch.isfinite(module(torch.from_numpy(images(2)))).all())
    assert not bool(module.get_submodule("depthwise").weight[3].any())


class Branching(nn.Module):
    """What a layer gives is read twice, and another layer is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.twice = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return self.last(torch.relu(y)) + self.twice(self.twice(y))


def test_layers_with_several_readers_or_calls_are_left_alone() -> None:
    assert find_pairs(Branching().eval(), "b") == ()


class Tokens(nn.Module):
    """Flattening (n, tokens, channels) mixes channels into no blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.flatten = nn.Flatten()
        self.last = nn.Linear(18, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.flatten(self.first(x)))
        return result


def test_flattened_tokens_are_no_blocks_of_channels() -> None:
    assert find_pairs(Tokens().eval(), "t") == ()
