"""Facts about layers that stay in float: by name, by type, by configuration, or as custom code."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
import torch.ao.quantization as tq
from torch import nn
from torch.ao.quantization.fx.custom_config import PrepareCustomConfig

from accelsim.artifacts import QuantizedModel
from accelsim.errors import InputError
from accelsim.legalize import legalize
from accelsim.quantize import quantize
from tests.quantize import resnet_forms as forms
from tests.quantize.networks import residual, source_of


def hosts(model: QuantizedModel) -> dict[str, str]:
    """Layers on the host, with the reason."""
    return {one.name: one.reason for one in legalize(model).host_ops if not one.boundary}


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("two.conv", {"two.conv"}),
        ("Linear", {"fc"}),
        ("nn.Conv2d", {"stem.0", "one.conv", "one.project", "two.conv", "two.project"}),
    ],
)
def test_excluded_layers_are_on_the_host_with_who_excluded_them(
    name: str, layers: set[str]
) -> None:
    model = quantize(dataclasses.replace(residual(), keep_float=(name,)))
    assert hosts(model) == dict.fromkeys(layers, f"excluded by '{name}'")
    assert dict(model.excluded) == hosts(model)


def test_exclusions_of_source_and_call_add_up() -> None:
    source = dataclasses.replace(residual(), keep_float=("fc",))
    assert set(hosts(quantize(source, keep_float=("stem",)))) == {"fc", "stem.0"}


def test_a_type_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="has no layer 'LSTM' to keep in float"):
        quantize(residual(), keep_float=("LSTM",))


def test_exclusions_in_a_users_configuration_are_told() -> None:
    with forms.engine("qnnpack"), torch.no_grad():
        mapping = tq.get_default_qconfig_mapping("qnnpack")
        mapping.set_module_name("layer.0.conv2", None).set_object_type(nn.Linear, None)
        prepared = tq.quantize_fx.prepare_fx(forms.network(), mapping, (forms.images(1),))
        prepared(forms.images(8))
        converted = tq.quantize_fx.convert_fx(copy.deepcopy(prepared))
    for module in (prepared, converted):
        found = hosts(quantize(forms.source(module)))
        assert set(found) == {"layer.0.conv2", "fc"}
        assert all("excluded by its quantization configuration" in why for why in found.values())


@pytest.mark.parametrize("signed", [False, True], ids=["quint8", "qint8"])
def test_activations_are_of_the_dtype_asked_for(signed: bool) -> None:
    model = quantize(residual(), signed=signed, per_channel=True)
    text = model.qdq.script()
    kind, other = ("int8", "uint8") if signed else ("uint8", "int8")
    assert f'out_dtype="{kind}"' in text and f'out_dtype="{other}"' not in text
    assert hosts(model) == {}
    assert (model.torch_int8 is None) == signed


@torch.fx.wrap
def running_sum(x: torch.Tensor) -> torch.Tensor:
    """Control flow that FX cannot trace, around an operator that the NPU lacks."""
    if x.shape[1] > 2:
        x = x * 0.5
    return torch.cumsum(x, 1)


class Custom(nn.Module):
    """A forward that FX cannot trace."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(int(x.shape[1])):
            x = x * 0.9
        return torch.cumsum(x, 1)


class Wrapped(nn.Module):
    """A wrapped function or a custom module between two convolutions."""

    def __init__(self, custom: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1)
        self.custom = Custom() if custom else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.second(running_sum(x) if self.custom is None else self.custom(x))


def test_a_wrapped_function_is_a_layer_on_the_host() -> None:
    model = quantize(source_of(Wrapped(False), forms.images(1).numpy()))
    assert model.layer_names == ("first", "running_sum", "second")
    assert "cumsum has no integer form" in hosts(model)["running_sum"]


def test_a_leaf_module_is_a_layer_on_the_host() -> None:
    leaf = PrepareCustomConfig().set_non_traceable_module_classes([Custom])
    with forms.engine("qnnpack"), torch.no_grad():
        prepared = tq.quantize_fx.prepare_fx(
            Wrapped(True).eval(),
            tq.get_default_qconfig_mapping("qnnpack"),
            (forms.images(1),),
            prepare_custom_config=leaf,
        )
        prepared(forms.images(8))
        converted = tq.quantize_fx.convert_fx(copy.deepcopy(prepared))
    for module in (prepared, converted):
        model = quantize(source_of(module, forms.images(1).numpy()))
        assert model.layer_names == ("first", "custom", "second")
        assert set(hosts(model)) == {"custom"}
