"""Integers and truth values inside a float network are not observed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel
from accelsim.quantize import quantize


class Masked(nn.Module):
    """A convolution whose results are kept where a token is not 0."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        mask = torch.reshape(tokens > 0, (1, 1, 8))
        kept: Tensor = self.conv(x) * mask.to(torch.float32)
        return kept


def test_a_mask_of_tokens_is_not_observed() -> None:
    torch.manual_seed(0)
    examples = (
        np.random.default_rng(0).normal(size=(1, 4, 8)).astype(np.float32),
        np.array([[3, 1, 0, 2, 2, 0, 5, 1]], np.int64),
    )
    network = Masked().eval()
    model = quantize(SourceModel("masked", network, examples, ("x", "tokens")))
    inputs = [torch.from_numpy(array) for array in examples]
    with torch.no_grad():
        found, wanted = model.torch_int8(*inputs), network(*inputs)
    assert (found[:, :, 2] == 0).all()
    assert torch.allclose(found, wanted, atol=0.05)
