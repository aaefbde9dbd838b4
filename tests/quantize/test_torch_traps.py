"""Known mistakes of users of PyTorch's quantization: one sentence each, which names the layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.ao.quantization as tq
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.quantize import quantize
from tests.quantize import resnet_forms as forms

_OPS = torch.ops.quantized_decomposed


def refusal(source: SourceModel) -> str:
    with pytest.raises(ModelError) as caught:
        quantize(source)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("make", "layer"),
    [
        (lambda: forms.fx_prepared(calibrated=False), "image"),
        (lambda: forms.fx_trained(steps=0), "image"),
        (lambda: forms.eager_prepared(calibrated=False), "quant"),
        (lambda: forms.eager_trained(steps=0), "quant"),
        (lambda: forms.pt2e_prepared(calibrated=False), "image"),
    ],
    ids=["fx", "fx qat", "eager", "eager qat", "pt2e"],
)
def test_observers_that_saw_nothing_are_named(make: Callable[[], nn.Module], layer: str) -> None:
    text = refusal(forms.source(make()))
    assert f"the observer of layer '{layer}' of resnet never saw data" in text


def test_one_observer_that_saw_nothing_is_named() -> None:
    prepared = forms.fx_prepared()
    names = {node.args[0].name: node.target for node in prepared.graph.nodes if node.args}
    observer = prepared.get_submodule(str(names["layer_0_conv2"]))
    observer.min_val.fill_(float("inf"))
    observer.max_val.fill_(float("-inf"))
    assert "layer 'layer.0.conv2' of resnet never saw data" in refusal(forms.source(prepared))


def test_converted_modules_that_were_never_calibrated_are_refused() -> None:
    prepared = forms.eager_prepared(calibrated=False)
    with forms.engine("qnnpack"):
        converted = tq.convert(prepared)
    text = refusal(forms.source(converted))
    assert "every activation of resnet has scale 1 and zero point 0" in text


def test_an_observer_that_saw_nan_is_named() -> None:
    prepared = forms.fx_prepared()
    prepared.activation_post_process_1.max_val.fill_(float("nan"))
    assert "layer 'conv1' of resnet saw NaN or infinity" in refusal(forms.source(prepared))


@pytest.mark.parametrize("scale", [0.0, float("nan"), float("inf"), -0.5])
def test_scales_that_are_none_are_refused_by_layer(scale: float) -> None:
    converted = forms.eager_converted()
    converted.layer[0].conv1.scale = scale
    text = refusal(forms.source(converted))
    assert "layer 'layer.0.conv1' of resnet has the scale" in text


class Levels(nn.Module):
    """A ReLU between two quantized tensors of any kind."""

    def __init__(self, scale: float = 0.1, zero: int = 0, dtype: torch.dtype = torch.int8) -> None:
        super().__init__()
        self.relu, self.parameters_ = nn.ReLU(), (scale, zero, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = _OPS.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
        x = self.relu(_OPS.dequantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8))
        scale, zero, dtype = self.parameters_
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        x = _OPS.quantize_per_tensor(x, scale, zero, low, high, dtype)
        return _OPS.dequantize_per_tensor(x, scale, zero, low, high, dtype)


def program(module: nn.Module) -> SourceModel:
    example = forms.images(1)
    made = torch.export.export(module, (example,))
    return SourceModel("m", made, (example.numpy(),), ("x",), already_quantized=True)


@pytest.mark.parametrize("dtype", [torch.int16, torch.uint16, torch.int32])
def test_activations_of_16_bits_are_refused_by_layer(dtype: torch.dtype) -> None:
    text = refusal(program(Levels(dtype=dtype)))
    kind = str(dtype).removeprefix("torch.")
    assert f"layer 'relu' of m is quantized to {kind}; the NPU takes 8 bits" in text


def test_observers_of_16_bits_are_refused_by_layer() -> None:
    with forms.engine("qnnpack"), torch.no_grad():
        wide = tq.MinMaxObserver.with_args(
            dtype=torch.qint32, quant_min=0, quant_max=65535, qscheme=torch.per_tensor_affine
        )
        module = forms.network()
        module.qconfig = tq.QConfig(wide, tq.default_weight_observer)
        tq.prepare(module, inplace=True)
        module(forms.images(4))
    text = refusal(forms.source(module))
    assert "layer 'quant' of resnet has qint32 activations of 65,536 levels" in text


@pytest.mark.parametrize(("scale", "shown"), [(0.0, "0"), (float("nan"), "nan"), (-1.0, "-1")])
def test_scales_in_programs_are_refused_by_layer(scale: float, shown: str) -> None:
    source = program(Levels())
    for node in source.float_module.graph.nodes:
        if node.name in ("quantize_per_tensor_1", "dequantize_per_tensor_1"):
            node.args = (node.args[0], scale, *node.args[2:])
    assert f"layer 'relu' of m has the scale {shown}; a positive" in refusal(source)


def test_zero_points_outside_of_the_dtype_are_refused() -> None:
    source = program(Levels())
    for node in source.float_module.graph.nodes:
        if node.name in ("quantize_per_tensor_1", "dequantize_per_tensor_1"):
            node.args = (*node.args[:2], 200, *node.args[3:])
    assert "layer 'relu' of m has a zero point that int8 does not have" in refusal(source)


class Dropping(Levels):
    """Dropout behind the quantized layers."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(super().forward(x))


def test_programs_in_training_mode_are_refused() -> None:
    text = refusal(program(Dropping().train()))
    assert "'drop' of m is a dropout in training mode; call eval()" in text


def test_dynamic_quantization_is_refused_by_layer() -> None:
    with forms.engine("qnnpack"):
        module = tq.quantize_dynamic(nn.Sequential(nn.Flatten(), nn.Linear(192, 4)).eval())
    assert "layer '1' of resnet is quantized dynamically" in refusal(forms.source(module))


def test_an_eager_module_without_stubs_is_told_about_them() -> None:
    module = forms.eager_converted()
    module.quant = nn.Identity()
    assert "needs a QuantStub" in refusal(forms.source(module))


class ByValue(nn.Module):
    """Control flow on values in a quantized module."""

    def __init__(self) -> None:
        super().__init__()
        self.net = forms.eager_converted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x if bool(x.sum() > 0) else -x)


def test_an_int8_module_that_looks_at_values_is_told_to_wrap() -> None:
    text = refusal(forms.source(ByValue()))
    assert "cannot be traced" in text and "torch.fx.wrap" in text


class Unusual(nn.Module):
    """A method whose first parameter has a name of its author's."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(me, x: torch.Tensor) -> torch.Tensor:  # noqa: N805
        return me.conv(x) if bool(x.sum() > 0) else x


def test_a_method_is_not_told_to_be_wrapped() -> None:
    text = refusal(SourceModel("net", Unusual(), (np.ones((1, 3, 8, 8), np.float32),), ("x",)))
    assert "cannot be traced" in text and "in forward" in text and "wrap" not in text


def test_torchscript_is_sent_to_an_export() -> None:
    with forms.engine("qnnpack"):
        scripted = torch.jit.trace(forms.eager_converted(), forms.images(1))
    text = refusal(forms.source(scripted))
    assert "is TorchScript" in text and "give the .pt2" in text


class Circle(nn.Module):
    """A convolution of an image that is joined at its ends."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.ring(x)
        return result


class Swapped(nn.Module):
    """Halves in the other order, by a slice of a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(self.conv(x).chunk(2, 1)[::-1], 1)


class Ungained(nn.Module):
    """A batch norm without gains that nothing absorbs."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, affine=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(torch.max_pool2d(self.conv(x), 2))
        return result


def given(module: nn.Module) -> SourceModel:
    image = np.random.default_rng(0).normal(size=(1, 4, 6, 6)).astype(np.float32)
    return SourceModel("net", module.eval(), (image,), ("x",), calibration=(image,))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Circle, "layer 'ring' of model net pads in a circle, which PyTorch's quantized"),
        (Swapped, "takes a slice of the tuple of tensors that layer 'chunk' gives"),
    ],
)
def test_what_pytorch_cannot_quantize_is_refused_in_words(
    make: Callable[[], nn.Module], sentence: str
) -> None:
    assert sentence in refusal(given(make()))


def test_a_batch_norm_without_gains_is_quantized() -> None:
    assert "norm" in quantize(given(Ungained())).layer_names
