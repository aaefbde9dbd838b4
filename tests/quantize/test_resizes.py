"""Resizes that interpolate are PyTorch's: the float operators of the QDQ module run on TVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch.nn import functional

from accelsim.quantize.converters import to_relax
from accelsim.reference.executable import UNOPTIMIZED, machine_of

BODIES: dict[str, Callable[[Any], Any]] = {
    "factor_2": partial(functional.interpolate, scale_factor=2.0, mode="bilinear"),
    "factor_1.7": partial(functional.interpolate, scale_factor=1.7, mode="bilinear"),
    "factors": partial(functional.interpolate, scale_factor=(0.7, 2.0), mode="bilinear"),
    "size": partial(functional.interpolate, size=(3, 11), mode="bilinear"),
    "corners": partial(
        functional.interpolate, scale_factor=1.7, mode="bilinear", align_corners=True
    ),
    "antialias": partial(functional.interpolate, size=(2, 3), mode="bilinear", antialias=True),
    "cubic": partial(functional.interpolate, scale_factor=2.0, mode="bicubic"),
    "line": lambda x: functional.interpolate(x.flatten(2), scale_factor=1.3, mode="linear"),
}


class Body(torch.nn.Module):
    """One function."""

    def __init__(self, body: Callable[[Any], Any]) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Any) -> Any:
        return self.body(x)


@pytest.mark.parametrize("name", BODIES)
def test_interpolation_is_that_of_pytorch(name: str) -> None:
    torch.manual_seed(0)
    x, module = torch.randn(1, 3, 5, 6), Body(BODIES[name]).eval()
    found = to_relax(torch.export.export(module, (x,)), "m")
    machine = machine_of(found, UNOPTIMIZED)
    actual = machine["main"](tvm.runtime.tensor(x.numpy()))
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(np.asarray(actual.numpy()), expected, atol=1e-5)


def test_only_sizes_and_whole_factors_stay_a_resize() -> None:
    """Others are gathers and sums, which the host has."""
    x = torch.randn(1, 3, 5, 6)
    kept = set()
    for name, body in BODIES.items():
        module = to_relax(torch.export.export(Body(body).eval(), (x,)), "m")
        if "image.resize2d" in module.script():
            kept.add(name)
    assert kept == {"factor_2", "size", "corners"}
