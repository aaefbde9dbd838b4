"""Facts about cross-layer equalisation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from accelsim.calibrate.equalize import equalized, find_pairs
from tests.calibrate.networks import chain, images

LAYERS = ("first", "depthwise", "grouped", "fc")


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


def test_every_layer_ends_within_a_factor_of_two_of_what_reads_it() -> None:
    source = chain(spread=3.0)
    with torch.no_grad():
        source.float_module.bn.weight[2] *= -1
        source.float_module.fc.weight.mul_(torch.exp2(torch.arange(54) // 9 - 3.0))
    module, pairs = equalized(source.float_module, "chain")
    assert len(pairs) == 3
    weights = {path: module.get_submodule(path).weight.detach().abs() for path in LAYERS}
    reading = {
        "first": weights["depthwise"].flatten(1).amax(1),
        # Of two groups, each of three outputs reads its four channels.
        "depthwise": weights["grouped"].reshape(2, 3, 4).amax(1).flatten(),
        "grouped": torch.stack([weights["fc"][:, 9 * c : 9 * c + 9].max() for c in range(6)]),
    }
    for path, read in reading.items():
        ratio = _ranges(module, path).detach() / read
        assert float(ratio.min()) >= 0.5 and float(ratio.max()) <= 2, path
    x = torch.from_numpy(images(4))
    assert torch.equal(module(x), source.float_module(x))


class Again(nn.Module):
    """A layer, or a batch norm, that is called a second time further on."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        self.first, self.twice, self.last = (nn.Conv2d(4, 4, 1) for _ in range(3))
        self.bn, self.norm = nn.BatchNorm2d(4), norm
        with torch.no_grad():
            self.first.weight[1] *= 64

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn(self.first(x)) if self.norm else self.first(x))
        if self.norm:
            result: torch.Tensor = self.last(torch.relu(self.bn(self.twice(y))))
        else:
            result = self.twice(torch.relu(self.twice(y)))
        return result


@pytest.mark.parametrize("norm", [False, True])
def test_what_is_called_again_further_on_keeps_its_weights(norm: bool) -> None:
    torch.manual_seed(0)
    network = Again(norm).eval()
    module, pairs = equalized(network, "again")
    x = torch.randn(2, 4, 5, 5)
    assert pairs == () and torch.equal(module(x), network(x))


class Between(nn.Module):
    """Two layers with something between them."""

    def __init__(self, between: Any, linear: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4) if linear else nn.Conv2d(3, 4, 1)
        self.second = nn.Linear(4, 4)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.second(input=self.between(self.first(x)))
        return result


@pytest.mark.parametrize(
    ("between", "linear", "found"),
    [
        (torch.relu, True, True),
        (torch.sigmoid, True, False),
        (functional.relu6, True, False),
        (lambda x: torch.flatten(x, 1), False, True),
        (lambda x: torch.flatten(x, 2), False, False),
        (lambda x: torch.flatten(x, 1), True, False),
        (lambda x: x.flatten(start_dim=1), False, True),
        (nn.Flatten(), False, True),
        (nn.Flatten(0), False, False),
        (nn.Flatten(), True, False),
    ],
)
def test_only_what_keeps_channels_apart_lets_a_factor_pass(
    between: Any, linear: bool, found: bool
) -> None:
    assert bool(find_pairs(Between(between, linear).eval(), "b")) == found


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
