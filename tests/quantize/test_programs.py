"""Facts about programs that are already quantized, and about models that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed
import tvm
from torch import nn

from accelsim.artifacts import SourceModel
from accelsim.errors import AccelsimError, InputError, ModelError
from accelsim.importer import load_model
from accelsim.importer.exported import from_program
from accelsim.quantize import layer_members, quantize, span_name
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from tests.quantize.networks import (
    Branching,
    EvenSame,
    OneSidedClamp,
    Unknown,
    images,
    residual,
    source_of,
)
from tests.quantize.test_qdq_form import array, calls

DECOMPOSED = torch.ops.quantized_decomposed


class NarrowLimits(nn.Module):
    """Quantize and dequantize with limits of 10 to 100 in uint8 or int8."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        arguments = (0.1, 20, 10, 100, self.dtype)
        return DECOMPOSED.dequantize_per_tensor(
            DECOMPOSED.quantize_per_tensor(x, *arguments), *arguments
        )


class TensorScale(nn.Module):
    """Scale and zero point from buffers, or computed from the input."""

    def __init__(self, computed: bool) -> None:
        super().__init__()
        self.computed = computed
        self.register_buffer("scale", torch.tensor(0.1))
        self.register_buffer("zero", torch.tensor(7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().max() if self.computed else self.scale
        arguments = (scale, self.zero, 0, 255, torch.uint8)
        return DECOMPOSED.dequantize_per_tensor(
            DECOMPOSED.quantize_per_tensor(x, *arguments), *arguments
        )


class Requantized(nn.Module):
    """A dequantize directly before a quantize with another scale."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = (0.1, 20, 0, 255, torch.uint8)
        second = (0.2, 30, 0, 255, torch.uint8)
        hidden = torch.relu(x)
        for arguments in (first, second):
            hidden = DECOMPOSED.dequantize_per_tensor(
                DECOMPOSED.quantize_per_tensor(hidden, *arguments), *arguments
            )
        return hidden


def _program(module: nn.Module) -> SourceModel:
    example = torch.from_numpy(images(1))
    return from_program(torch.export.export(module.eval(), (example,)), "test")


def _run(module: object, inputs: np.ndarray) -> np.ndarray:
    machine = machine_of(module, UNOPTIMIZED)
    return machine["main"](tvm.runtime.tensor(inputs)).numpy()


@pytest.mark.parametrize("per_channel", [False, True])
def test_saved_program_gives_the_same_module(tmp_path: Path, per_channel: bool) -> None:
    original = quantize(residual(dropout=False), per_channel=per_channel)
    torch.export.save(original.exported, tmp_path / "q.pt2")
    again = quantize(load_model(str(tmp_path / "q.pt2")))
    assert again.torch_int8 is None
    assert again.layer_names == original.layer_names
    for one, two in zip(calls(original), calls(again), strict=True):
        assert one.op.name == two.op.name
        assert span_name(one) == span_name(two)
    assert np.array_equal(_run(original.qdq, images(1, 9)), _run(again.qdq, images(1, 9)))


def test_float_program_is_quantized_like_its_module(tmp_path: Path) -> None:
    source = residual(batch=16)
    example = (torch.from_numpy(source.example_inputs[0]),)
    torch.export.save(torch.export.export(source.float_module, example), tmp_path / "f.pt2")
    imported = quantize(load_model(str(tmp_path / "f.pt2")))
    direct = quantize(source_of(source.float_module, source.example_inputs[0], "image"))
    assert imported.layer_names == direct.layer_names
    assert layer_members(imported.qdq) == layer_members(direct.qdq)
    inputs = images(16, 2)
    assert np.array_equal(_run(imported.qdq, inputs), _run(direct.qdq, inputs))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_narrow_limits_become_an_integer_clip(dtype: torch.dtype) -> None:
    model = quantize(_program(NarrowLimits(dtype)))
    (clip,) = calls(model, "relax.clip")
    assert [int(limit.value) for limit in clip.args[1:]] == [10, 100]
    assert span_name(clip) == "x"
    inputs = images(1) * 20
    expected = (np.clip(np.rint(inputs / np.float32(0.1)) + 20, 10, 100) - 20) * np.float32(0.1)
    np.testing.assert_allclose(_run(model.qdq, inputs), expected, rtol=1e-6)


def test_full_limits_need_no_clip() -> None:
    assert not calls(quantize(_program(TensorScale(computed=False))), "relax.clip")


def test_tensor_overload_takes_its_qparams_from_buffers() -> None:
    model = quantize(_program(TensorScale(computed=False)))
    (call,) = calls(model, "relax.quantize")
    assert array(call.args[1]) == np.float32(0.1)
    assert array(call.args[2]) == 7


def test_requantization_is_a_layer() -> None:
    model = quantize(_program(Requantized()))
    assert model.layer_names == ("relu", "relu/requantize")


def test_computed_scale_is_refused() -> None:
    with pytest.raises(ModelError, match="at run time; only static quantization"):
        quantize(_program(TensorScale(computed=True)))


def test_sixteen_bit_activations_are_refused() -> None:
    with pytest.raises(ModelError, match="quantized to int16; the NPU takes 8 bits"):
        quantize(_program(NarrowLimits(torch.int16)))


def test_clamp_with_one_limit_keeps_its_int8_golden() -> None:
    quantized = quantize(source_of(OneSidedClamp(), images(1)))
    assert quantized.layer_names == ("clamp",)
    assert quantized.torch_int8 is not None


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Branching(), "cannot be traced"),
        (EvenSame(), "convolution 'conv' .* even kernel"),
        (Unknown(), "layer 'mode' of model test calls aten.mode.default, which neither TVM nor"),
    ],
)
def test_unsupported_module_is_one_sentence(module: nn.Module, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        quantize(source_of(module, images(1)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("calibration", "kind", "message"),
    [
        (np.full((1, 3, 8, 8), np.nan, np.float32), InputError, "NaN or infinity"),
        (np.zeros((1, 4, 8, 8), np.float32), ModelError, r"batch 0 of shape \(1, 4, 8, 8\)"),
    ],
)
def test_bad_calibration_is_one_sentence(
    calibration: np.ndarray, kind: type[AccelsimError], message: str
) -> None:
    source = residual()
    broken = SourceModel(
        "test", source.float_module, (images(1),), ("image",), calibration=(calibration,)
    )
    with pytest.raises(kind, match=message) as caught:
        quantize(broken)
    assert "\n" not in str(caught.value)


def test_unknown_observer_is_refused() -> None:
    with pytest.raises(InputError, match="use one of minmax, percentile"):
        quantize(residual(), observer="median")
