"""Facts about replacements: where they fit, what they compute, which layers they name."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from accelsim.advise.replace import apply, traced
from accelsim.advise.rules import all_rules
from accelsim.errors import InputError


class Written(nn.Module):
    """Activations as people write them out, one of each."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
        y = y * torch.sigmoid(y)
        y = functional.relu6(y + 3) * y / 6
        return y * torch.tanh(functional.softplus(y))


class Small(nn.Module):
    """A network with one of everything that a rule looks for."""

    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Conv2d(3, 10, 7, stride=2, padding=3)
        self.silu = nn.SiLU()
        self.middle = nn.Conv2d(10, 12, 3, padding=1, bias=False)
        self.gelu = nn.GELU()
        self.narrow = nn.Conv2d(12, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.silu(self.silu(self.large(x)))
        return functional.mish(self.narrow(self.gelu(self.middle(y))))


def sites(rule: str, module: nn.Module | None = None) -> list[str]:
    """Layers that a rule fits."""
    network = traced(module if module is not None else Small(), "small")
    return [site.layer for site in network.sites(all_rules()[rule])]


@pytest.mark.parametrize(
    ("rule", "layers"),
    [
        ("silu-relu6", ["silu", "silu_1"]),
        ("silu-hardswish", ["silu", "silu_1"]),
        ("gelu-relu6", ["gelu"]),
        ("mish-relu6", ["mish"]),
        ("stacked-kernels", ["large"]),
        ("separable", ["middle"]),
        ("activation-table", []),
    ],
)
def test_a_rule_fits_what_it_names(rule: str, layers: list[str]) -> None:
    assert sites(rule) == layers


def test_every_rule_is_tried_above() -> None:
    assert set(all_rules()) >= {"silu-relu6", "separable", "activation-table", "stacked-kernels"}
    assert len(all_rules()) == 8


def test_written_activations_become_one_module_each_and_stay_the_same() -> None:
    x = torch.linspace(-6, 6, 240).reshape(1, 4, 6, 10)
    network = traced(Written(), "written")
    done = apply(network, ["activation-table"])
    called = [node for node in network.graph.graph.nodes if node.op.startswith("call")]
    kinds = [type(network.graph.get_submodule(str(node.target))) for node in called]
    assert kinds == [nn.GELU, nn.SiLU, nn.Hardswish, nn.Mish]
    assert len(done) == 4
    assert torch.allclose(network.graph(x), Written()(x), atol=1e-5)


def test_arithmetic_that_is_no_activation_stays() -> None:
    class Other(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 0.4 * (1.0 + torch.erf(x / math.sqrt(2.0)))

    assert sites("activation-table", Other()) == []


def test_an_activation_of_two_tensors_stays() -> None:
    class Gate(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * torch.sigmoid(x.flip(1))

    assert sites("activation-table", Gate()) == []


def test_a_replacement_changes_the_named_layer_only_and_keeps_its_name() -> None:
    network = traced(Small().eval(), "small")
    assert apply(network, ["silu-relu6:silu_1"]) == ["silu_1: silu-relu6"]
    assert sites("silu-relu6", network.graph) == ["silu"]
    assert isinstance(network.graph.get_submodule("silu_1"), nn.ReLU6)


def test_a_stack_reaches_as_far_as_the_large_kernel() -> None:
    network = traced(Small().eval(), "small")
    apply(network, ["stacked-kernels"])
    x = torch.zeros(1, 3, 17, 19)
    assert network.graph(x).shape == Small()(x).shape
    made = [
        m for m in network.graph.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)
    ]
    assert len(made) == 3 + 2


def test_a_separable_convolution_is_exact_where_the_weights_have_rank_one() -> None:
    small = Small().eval()
    taps, mixing = torch.randn(10, 9), torch.randn(12, 10)
    weight = torch.einsum("it,oi->oit", taps, mixing).reshape(12, 10, 3, 3)
    small.middle.weight = nn.Parameter(weight)
    network = traced(small, "small")
    apply(network, ["separable"])
    x = torch.randn(1, 3, 16, 16)
    assert torch.allclose(network.graph(x), small(x), atol=1e-4)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("silu-relu", "there is no replacement 'silu-relu'; there are silu-relu6"),
        ("silu-relu6:gelu", "does not fit layer 'gelu' of the model; it fits silu, silu_1"),
        ("activation-table", "does not fit any layer"),
    ],
)
def test_what_cannot_be_applied_is_said_in_one_sentence(wanted: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        apply(traced(Small(), "small"), [wanted])
