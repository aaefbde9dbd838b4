"""A residual whose input PyTorch observed twice, to levels that lie far apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao import quantization
from torch.ao.quantization.quantize_fx import prepare_fx


class Normed(nn.Module):
    """(1, 10, 16) → (1, 10, 16)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.fc = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        behind: Tensor = self.fc(self.norm(x))
        return behind + x


def make() -> tuple[nn.Module, Tensor]:
    """The calibrated network: the norm reads x in steps of 0.2, the sum in the steps of MinMax."""
    torch.manual_seed(0)
    torch.backends.quantized.engine = "qnnpack"
    observer = quantization.MinMaxObserver.with_args(dtype=torch.quint8)
    coarse = quantization.FixedQParamsObserver.with_args(
        scale=0.2, zero_point=40, dtype=torch.quint8, quant_min=0, quant_max=255
    )
    weight = quantization.default_weight_observer
    mapping = quantization.get_default_qconfig_mapping("qnnpack").set_global(
        quantization.QConfig(activation=observer, weight=weight)
    )
    x = torch.randn(1, 10, 16)
    prepared = prepare_fx(Normed().eval(), mapping, (x,))
    (place,) = (n.args[0].target for n in prepared.graph.nodes if n.name == "norm")
    setattr(prepared, place, coarse())
    with torch.no_grad():
        prepared(x)
    return prepared, x
