"""Integers and truth values inside a float network are not observed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel
from accelsim.calibrate.traps import check_finite
from accelsim.importer.exported import from_program
from accelsim.quantize import quantize
from accelsim.quantize.fx_graph import calibrate, convert, prepare
from accelsim.quantize.recipe import Recipe


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


class Causal(nn.Module):
    """Attention in which a position sees none behind it, written in one of several ways."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("mask", torch.full((6, 6), float("-inf")).triu(1))
        self.register_buffer("seen", torch.ones(6, 6).tril() == 1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.query(x), self.key(x), self.value(x)
        scores = query @ key.transpose(-2, -1)
        if self.form == "buffer":
            scores = scores + self.mask.unsqueeze(0)
        elif self.form == "fill":
            scores = scores.masked_fill(~self.seen, float("-inf"))
        else:
            scores = torch.where(self.seen, scores, float("-inf"))
        attended: Tensor = torch.softmax(scores, -1) @ value
        return attended


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("form", ["buffer", "fill", "where"])
def test_minus_infinity_below_a_softmax_hides_what_it_masks(form: str, exported: bool) -> None:
    torch.manual_seed(0)
    network = Causal(form).eval()
    x = torch.randn(1, 6, 8)
    source = SourceModel("causal", network, (x.numpy(),), ("x",))
    if exported:
        source = from_program(torch.export.export(network, (x,)), "causal")
    prepared = prepare(source, Recipe())
    check_finite(prepared, [source.example_inputs])
    calibrate(prepared, [source.example_inputs])
    found, wanted = convert(prepared).reference(x), network(x)
    assert torch.isinf(network.mask).any()  # the user's own stays
    assert torch.allclose(found[:, 0], wanted[:, 0], atol=0.05)  # of the first value alone
    assert torch.allclose(found, wanted, atol=0.15)
