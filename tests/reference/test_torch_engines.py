"""Facts about PyTorch's x86 kernels next to those of qnnpack."""

from __future__ import annotations

import torch
import torch.ao.quantization as tq
from torch import nn

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.quantize import quantize
from accelsim.reference.torch_engines import (
    EngineDifference,
    engine_differences,
    engine_sentence,
)
from tests.quantize import resnet_forms as forms


class Wide(nn.Module):
    """Many outputs, with biases that are no whole number of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 64, 3, padding=1)
        self.act = nn.ReLU()
        self.second = nn.Conv2d(64, 64, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.act(self.first(x)))


def wide() -> QuantizedModel:
    torch.manual_seed(0)
    with forms.engine("x86"), torch.no_grad():
        mapping = tq.get_default_qconfig_mapping("x86")
        prepared = tq.quantize_fx.prepare_fx(Wide().eval(), mapping, (forms.images(1),))
        prepared(forms.images(8))
        module = tq.quantize_fx.convert_fx(prepared)
    return quantize(SourceModel("wide", module, (forms.images(1).numpy(),), ("x",)))


def test_differences_are_what_a_bias_in_float_makes() -> None:
    found = engine_differences(wide(), (forms.images(8, 3).numpy(),))
    assert [one.layer for one in found] == ["first", "second"]
    assert sum(one.elements for one in found) == 2 * 8 * 64 * 64
    assert sum(one.differences for one in found) > 0
    assert all(one.explained == one.differences for one in found)


def test_a_network_without_int8_form_has_no_differences() -> None:
    assert engine_differences(quantize(forms.pt2e()), (forms.images(1).numpy(),)) == ()


def test_the_sentence_counts_what_is_not_explained() -> None:
    rows = (EngineDifference("a", 1000, 3, 3), EngineDifference("b", 500, 2, 1))
    assert engine_sentence(rows[:1]) == (
        "PyTorch's x86 engine differs from qnnpack in 3 of 1,000 outputs of 1 layers: all of them "
        "as its float32 bias makes them"
    )
    assert engine_sentence(rows).endswith("4 of them as its float32 bias makes them, 1 unexplained")
