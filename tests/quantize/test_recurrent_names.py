"""A recurrent module that stays on the host is called by the user's name."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel
from accelsim.importer.exported import from_program
from accelsim.quantize import quantize


class Recurrent(nn.Module):
    """An LSTM between two linear layers."""

    def __init__(self, last: bool) -> None:
        super().__init__()
        self.last = last
        self.into, self.head = nn.Linear(8, 8), nn.Linear(8, 4)
        self.memory = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        steps, (hidden, _) = self.memory(self.into(x))
        found: Tensor = self.head(hidden[-1] if self.last else steps)
        return found


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_an_lstm_on_the_host_has_its_module_s_name(last: bool, exported: bool) -> None:
    torch.manual_seed(0)
    network, x = Recurrent(last).eval(), torch.randn(1, 3, 8)
    source = SourceModel("net", network, (x.numpy(),), ("x",))
    if exported:
        source = from_program(torch.export.export(network, (x,)), "net")
    (name,) = quantize(source).excluded
    assert name.split("/")[0] == "memory"
