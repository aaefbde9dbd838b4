"""Facts about modules that PyTorch quantized, in every form in which a user may have them."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.ao.quantization as tq
from torch import nn

from accelsim.artifacts import QuantizedModel
from accelsim.quantize import layer_members, quantize, torch_layer_outputs, torch_layers
from tests.quantize import resnet_forms as forms
from tests.quantize.networks import residual

WEIGHTED = ("conv1", "layer.0.conv1", "layer.0.conv2", "layer.1.conv1", "layer.1.conv2", "fc")
INT8 = {
    "fx": forms.fx_converted,
    "fx-x86": lambda: forms.fx_converted("x86"),
    "eager": forms.eager_converted,
    "eager-fbgemm": lambda: forms.eager_converted("fbgemm"),
}
UNFINISHED = {
    "fx prepared": forms.fx_prepared,
    "fx fbgemm": lambda: forms.fx_prepared("fbgemm"),
    "fx trained": forms.fx_trained,
    "eager prepared": forms.eager_prepared,
    "eager trained": forms.eager_trained,
}


def own_output(module: nn.Module, engine: str = "qnnpack") -> np.ndarray:
    with forms.engine(engine), torch.no_grad():
        return module(forms.images(1, 7)).numpy()


@pytest.mark.parametrize("make", INT8.values(), ids=INT8)
def test_every_layer_of_an_int8_module_has_the_users_kernel(make: Callable[[], nn.Module]) -> None:
    model = quantize(forms.source(make()))
    assert set(torch_layers(model)) >= {*model.layer_names}
    assert set(WEIGHTED) <= set(model.layer_names)


@pytest.mark.parametrize("make", [forms.fx_converted, forms.eager_converted])
def test_golden_computes_what_the_users_module_computes(make: Callable[[], nn.Module]) -> None:
    module = make()
    expected = own_output(module)
    model = quantize(forms.source(module))
    levels = torch_layer_outputs(model, (forms.images(1, 7).numpy(),))["fc"]
    layer = module.get_submodule("fc")
    found = (levels.astype(np.float32) - layer.zero_point) * np.float32(layer.scale)
    assert len(np.unique(expected)) > 3
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("make", INT8.values(), ids=INT8)
def test_weights_and_biases_are_those_that_were_packed(make: Callable[[], nn.Module]) -> None:
    module = make()
    weight, bias = module.get_submodule("layer.0.conv1")._weight_bias()
    state = quantize(forms.source(module)).exported.state_dict
    assert any(torch.equal(one, weight.int_repr()) for one in state.values())
    assert any(torch.equal(one, bias) for one in state.values())


def test_exported_program_computes_the_same_levels() -> None:
    model = quantize(forms.source(forms.eager_converted()))
    image = forms.images(1, 7)
    expected = torch_layer_outputs(model, (image.numpy(),))["fc"]
    layer = model.torch_int8.get_submodule("fc")
    found = model.exported.module()(image).detach().numpy() / layer.scale + layer.zero_point
    # Its float bias and float sums may lie on the other side of a rounding.
    assert np.abs(np.rint(found) - expected).max() <= 1


def test_the_users_module_is_left_as_it_was() -> None:
    module = forms.eager_converted("x86")
    before = own_output(module, "x86")
    quantize(forms.source(module))
    assert np.array_equal(own_output(module, "x86"), before)
    assert not module.training


def test_identities_that_fusion_left_are_members_of_the_convolution() -> None:
    model = quantize(forms.source(forms.eager_converted()))
    members = layer_members(model.qdq)
    assert members["conv1"] == ("conv1", "bn1", "relu")
    assert members["layer.1.conv2"] == ("layer.1.conv2", "layer.1.bn2")
    assert members["layer.1.skip"] == ("layer.1.skip",)


@pytest.mark.parametrize("make", UNFINISHED.values(), ids=UNFINISHED)
def test_prepared_modules_are_converted(make: Callable[[], nn.Module]) -> None:
    model = quantize(forms.source(make()))
    assert set(torch_layers(model)) >= {*model.layer_names}
    assert set(WEIGHTED) <= set(model.layer_names)


def test_prepared_fx_modules_list_what_was_fused() -> None:
    members = layer_members(quantize(forms.source(forms.fx_prepared())).qdq)
    assert members["conv1"] == ("conv1", "bn1", "relu")
    assert members["layer.0.conv2"] == ("layer.0.conv2", "layer.0.bn2")


def test_a_trained_module_has_the_scales_that_convert_gives() -> None:
    prepared = forms.fx_trained()
    with forms.engine("qnnpack"):
        own = tq.quantize_fx.convert_fx(copy.deepcopy(prepared).eval())
    model = quantize(forms.source(prepared))
    for name in WEIGHTED:
        expected, found = own.get_submodule(name), model.torch_int8.get_submodule(name)
        assert (found.scale, found.zero_point) == (expected.scale, expected.zero_point)


def test_dropout_of_a_trained_module_leaves_no_trace() -> None:
    module = residual(dropout=True).float_module.train()
    with forms.engine("qnnpack"):
        mapping = tq.get_default_qat_qconfig_mapping("qnnpack")
        prepared = tq.quantize_fx.prepare_qat_fx(module, mapping, (forms.images(1),))
        forms.train(prepared, 2)
    model = quantize(forms.source(prepared))
    assert set(torch_layers(model)) >= {*model.layer_names}
    assert "dropout" not in model.layer_names
    assert model.torch_int8.get_submodule("pool") is not None


def clipped(model: QuantizedModel) -> dict[str, np.ndarray]:
    return torch_layer_outputs(model, (forms.images(4, 7).numpy() * 40,))


def test_limits_of_fbgemm_hold_in_the_golden() -> None:
    source = forms.source(forms.fx_prepared("fbgemm"))
    levels = clipped(quantize(source))
    assert levels["layer.0.conv1"].max() == 127
    assert all(values.max() <= 127 for name, values in levels.items())


def test_a_converted_module_has_no_limits_but_its_kernels() -> None:
    levels = clipped(quantize(forms.source(forms.fx_converted("fbgemm"))))
    assert levels["layer.0.conv1"].max() == 255


def test_functions_of_eager_modules_become_layers() -> None:
    model = quantize(forms.source(Functions.converted()))
    assert {"sum", "add_scalar", "product", "both"} <= set(model.layer_names)
    assert set(torch_layers(model)) >= {*model.layer_names}


class Functions(nn.Module):
    """Every function of FloatFunctional on two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.left, self.right = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)
        for name in ("sum", "product", "both", "shifted"):
            self.add_module(name, torch.ao.nn.quantized.FloatFunctional())

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.quant(image)
        left, right = self.left(x), self.right(x)
        total = self.sum.add(left, right)
        product = self.product.mul(self.shifted.add_scalar(total, 0.5), right)
        return self.dequant(self.both.cat([total, product], dim=1))

    @classmethod
    def converted(cls) -> nn.Module:
        torch.manual_seed(1)
        module = cls().eval()
        with forms.engine("qnnpack"), torch.no_grad():
            module.qconfig = tq.get_default_qconfig("qnnpack")
            tq.prepare(module, inplace=True)
            module(forms.images(8))
            return tq.convert(module)


KERNELS = {
    *("conv", "swish", "leaky", "elu", "max_pool2d", "bn", "sigmoid", "mul", "up", "prelu"),
    *("avg_pool2d", "twice", "mean", "cat", "line", "reshape", "norm", "fc"),
}


def test_every_kernel_of_a_converted_module_is_a_layer() -> None:
    model = quantize(forms.kernels())
    assert set(model.layer_names) == KERNELS
    assert set(torch_layers(model)) >= KERNELS


def test_a_prepared_module_without_reference_is_taken_by_its_int8_form() -> None:
    model = quantize(forms.source(forms.kernels_prepared()))
    assert set(model.layer_names) == KERNELS
    assert set(torch_layers(model)) >= KERNELS
