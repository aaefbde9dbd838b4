"""Known traps of quantization end in one sentence that names the place."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.ao.quantization import get_default_qat_qconfig_mapping
from torch.ao.quantization.quantize_fx import prepare_qat_fx

from accelsim.artifacts import SourceModel
from accelsim.calibrate import check_optimizer
from accelsim.calibrate.switches import switched_layers
from accelsim.calibrate.traps import check_finite, check_observers, check_scales
from accelsim.errors import ModelError
from accelsim.importer.checks import check_parameters
from accelsim.quantize.fx_graph import prepare
from accelsim.quantize.recipe import Recipe
from tests.calibrate.networks import chain, images, quantized, seeded


def test_nan_in_a_weight_names_the_parameter() -> None:
    source = chain()
    with torch.no_grad():
        source.float_module.grouped.weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match=r"'grouped.weight' of model chain has NaN or infinity"):
        check_parameters(source.float_module, "chain")


class Root(nn.Module):
    """The square root of negative numbers in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.last = nn.Conv2d(3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(torch.sqrt(self.conv(x)))
        return result


def test_nan_in_float_names_the_layer_that_made_it() -> None:
    source = SourceModel("root", seeded(Root), (images(1),), ("x",))
    with pytest.raises(ModelError, match=r"layer 'sqrt' of model root gives NaN .* batch 0"):
        check_finite(prepare(source, Recipe()), [(images(4),)])


def test_observers_that_never_saw_data_are_named() -> None:
    with pytest.raises(ModelError, match=r"\d observers of model chain never saw data, .* 'x'"):
        check_observers(prepare(chain(), Recipe()))


@pytest.mark.parametrize("scale", [0.0, float("nan"), float("inf"), -1.0])
def test_a_scale_that_is_no_positive_number_names_the_layer(scale: float) -> None:
    network = quantized(chain())
    (layer,) = [one for one in switched_layers(network) if one.name == "grouped"]
    value, _, *rest = layer.quantize.args
    layer.quantize.args = (value, scale, *rest)
    with pytest.raises(ModelError, match="output of layer 'grouped' of model chain got the scale"):
        check_scales([layer], "chain")


def test_a_layer_that_is_always_zero_is_a_warning() -> None:
    source = chain()
    with torch.no_grad():
        source.float_module.grouped.bias.fill_(-100)
        source.float_module.depthwise.weight.zero_()
    warnings = check_scales(switched_layers(quantized(source)), "chain")
    assert any("layer 'grouped' gives zeros only" in one for one in warnings)
    assert any("layer 'depthwise' has weights that are all zero" in one for one in warnings)
    assert check_scales(switched_layers(quantized(chain())), "chain") == []


def test_an_optimizer_made_before_preparing_is_refused() -> None:
    module = chain().float_module.train()
    early = torch.optim.SGD(module.parameters(), lr=0.1)
    mapping = get_default_qat_qconfig_mapping("qnnpack")
    prepared = prepare_qat_fx(copy.deepcopy(module), mapping, (torch.from_numpy(images(1)),))
    with pytest.raises(ModelError, match="make the optimizer after prepare_qat_fx"):
        check_optimizer(early, prepared)
    check_optimizer(torch.optim.SGD(prepared.parameters(), lr=0.1), prepared)


def choosing(x: torch.Tensor) -> torch.Tensor:
    """A function that cannot be followed."""
    return x if bool(x.sum() > 0) else -x


class Calling(nn.Module):
    """Calls it, or chooses by itself."""

    def __init__(self, function: bool) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.function:
            return choosing(x)
        return x if bool(x.sum() > 0) else -x


def test_where_tracing_stopped_is_said_with_the_way_out() -> None:
    source = SourceModel("calling", Calling(True).eval(), (images(1),), ("x",))
    sentence = r"at test_traps.py:\d+ in choosing; .*torch.fx.wrap\('choosing'\) must stand"
    with pytest.raises(ModelError, match=sentence):
        prepare(source, Recipe())


def test_a_forward_that_depends_on_values_is_named() -> None:
    source = SourceModel("calling", Calling(False).eval(), (images(1),), ("x",))
    with pytest.raises(ModelError, match=r"test_traps.py:\d+ in forward; its .* values$"):
        prepare(source, Recipe())
