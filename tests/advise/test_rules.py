"""Facts about replacements: where they fit, what they compute, which layers they name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
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


@pytest.mark.parametrize(
    ("rule", "layer", "kind"),
    [
        ("silu-relu6", "silu", nn.ReLU6),
        ("silu-hardswish", "silu", nn.Hardswish),
        ("gelu-relu6", "gelu", nn.ReLU6),
        ("mish-relu6", "mish", nn.ReLU6),
        ("mish-hardswish", "mish", nn.Hardswish),
    ],
)
def test_an_activation_becomes_the_one_that_the_rule_names(
    rule: str, layer: str, kind: type[nn.Module]
) -> None:
    network = traced(Small().eval(), "small")
    apply(network, [rule])
    (node,) = [n for n in network.graph.graph.nodes if str(n.target).split("_new")[0] == layer]
    assert type(network.graph.get_submodule(str(node.target))) is kind


def test_the_network_itself_stays_as_it_was() -> None:
    small = Small().train()
    x = torch.randn(1, 3, 16, 16)
    before = small.eval()(x)
    network = traced(small.train(), "small")
    apply(network, ["silu-relu6", "separable"])
    with torch.no_grad():
        for one in network.graph.parameters():
            one.zero_()
    assert small.training and not network.graph.training
    assert torch.equal(small.eval()(x), before)


def _convolution(*arguments: Any, **options: Any) -> nn.Module:
    return nn.Sequential(nn.Conv2d(*arguments, **options)).eval()


@pytest.mark.parametrize(
    ("rule", "arguments", "options", "fits"),
    [
        ("separable", (8, 8, 3), {}, True),
        ("separable", (8, 9, (1, 2)), {}, True),
        ("separable", (8, 8, 1), {}, False),
        ("separable", (8, 7, 3), {}, False),
        ("separable", (7, 8, 3), {}, False),
        ("separable", (16, 16, 3), {"groups": 2}, False),
        ("stacked-kernels", (3, 4, 5), {"padding": 2}, True),
        ("stacked-kernels", (3, 4, 3), {"padding": 1}, False),
        ("stacked-kernels", (3, 4, 6), {"padding": 3}, False),
        ("stacked-kernels", (3, 4, (5, 7)), {"padding": (2, 3)}, False),
        ("stacked-kernels", (3, 4, 5), {"padding": 1}, False),
        ("stacked-kernels", (4, 4, 5), {"padding": 2, "groups": 2}, False),
        ("stacked-kernels", (3, 4, 5), {"padding": 2, "dilation": 2}, False),
    ],
)
def test_a_convolution_is_replaced_where_that_gains(
    rule: str, arguments: tuple[Any, ...], options: dict[str, Any], fits: bool
) -> None:
    assert bool(sites(rule, _convolution(*arguments, **options))) == fits


def test_a_separable_convolution_keeps_stride_padding_dilation_and_bias() -> None:
    module = _convolution(9, 11, 3, (2, 1), (1, 3), (2, 3))
    taps, mixing = torch.randn(9, 9), torch.randn(11, 9)
    weight = torch.einsum("it,oi->oit", taps, mixing).reshape(11, 9, 3, 3)
    module[0].weight = nn.Parameter(weight)
    network = traced(module, "m")
    apply(network, ["separable"])
    x = torch.randn(2, 9, 13, 12)
    assert torch.allclose(network.graph(x), module(x), atol=1e-4)


def test_a_separable_convolution_is_as_near_as_one_of_rank_one_can_be() -> None:
    module = _convolution(8, 10, 3, bias=False)
    network = traced(module, "m")
    apply(network, ["separable"])
    depthwise, pointwise = (m for m in network.graph.modules() if isinstance(m, nn.Conv2d))
    made = pointwise.weight[:, :, 0] * depthwise.weight[:, 0].flatten(1)[None]
    given = module[0].weight.flatten(2)
    for channel in range(8):
        lost = float(((made - given)[:, channel] ** 2).sum().detach())
        others = np.linalg.svd(given[:, channel].detach().double().numpy())[1][1:]
        assert lost == pytest.approx(float((others**2).sum()), rel=1e-4)


def test_a_stack_has_the_stride_first_and_the_bias_last() -> None:
    module = _convolution(3, 4, 7, (2, 1), 3)
    network = traced(module, "m")
    apply(network, ["stacked-kernels"])
    made = [m for m in network.graph.modules() if isinstance(m, nn.Conv2d | nn.ReLU)]
    assert [type(m) for m in made] == [nn.Conv2d, nn.ReLU, nn.Conv2d, nn.ReLU, nn.Conv2d]
    convolutions = [m for m in made if isinstance(m, nn.Conv2d)]
    assert [m.stride for m in convolutions] == [(2, 1), (1, 1), (1, 1)]
    assert torch.equal(convolutions[-1].bias, module[0].bias)


def test_an_activation_whose_middle_is_read_elsewhere_stays() -> None:
    class Read(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            gate = torch.sigmoid(x)
            return torch.cat([x * gate, gate], 1)

    assert sites("activation-table", Read()) == []


def test_what_equals_an_activation_near_zero_only_stays() -> None:
    class Near(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * (x / 6 + 0.5)  # hard-swish between -3 and 3

    assert sites("activation-table", Near()) == []
