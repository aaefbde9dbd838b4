"""Every function that a network may call is converted as PyTorch computes it, or refused by name.

Functions share networks, many to one, since each network costs a compilation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from torch.utils import _pytree as pytree

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.legalize import legalize
from accelsim.quantize import quantize
from accelsim.quantize.converters import to_relax
from accelsim.reference.executable import UNOPTIMIZED, machine_of
from accelsim.reference.graph import read_network
from tests.quantize.functions import FUNCTIONS
from tests.quantize.modules import UNKNOWN, modules
from tests.quantize.moves import MOVES

Function = Callable[[Any], Any]

IMAGE = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype(np.float32)
TOGETHER = 12


class Many(nn.Module):
    """Functions of one convolution, with a linear layer behind each that has a float result."""

    def __init__(self, functions: Mapping[str, Function], linear: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.functions = dict(functions)
        self.named = nn.ModuleDict(
            {name: one for name, one in functions.items() if isinstance(one, nn.Module)}
        )
        self.behind = nn.ModuleDict()
        self.eval()
        with torch.no_grad():
            hidden = self.conv(torch.from_numpy(IMAGE))
            for name, function in functions.items() if linear else ():
                size = _first(function(hidden)).flatten(1).shape[1]
                self.behind[name] = nn.Linear(size, 3)

    def forward(self, image: torch.Tensor) -> Any:
        """(1, 3, 6, 6) → a tuple of what the functions give, or of (1, 3) behind them."""
        hidden = self.conv(image)
        results = []
        for name, function in self.functions.items():
            result = self.named[name](hidden) if name in self.named else function(hidden)
            results.append(self.behind[name](result.flatten(1)) if name in self.behind else result)
        return tuple(results)


def _first(result: Any) -> Any:
    return pytree.tree_leaves(result)[0]


def _groups() -> list[Any]:
    found = []
    for kind, table in (("functions", FUNCTIONS), ("moves", MOVES), ("modules", modules())):
        names = list(table)
        for start in range(0, len(names), TOGETHER):
            some = {name: table[name] for name in names[start : start + TOGETHER]}
            found.append(pytest.param(some, id=f"{kind}-{names[start]}"))
    return found


def _leaves(value: Any) -> list[Any]:
    return (
        [value.numpy()] if hasattr(value, "numpy") else [a for one in value for a in _leaves(one)]
    )


@pytest.mark.parametrize("functions", _groups())
def test_converted_functions_equal_pytorch(functions: dict[str, Function]) -> None:
    network, image = Many(functions, linear=False), torch.from_numpy(IMAGE)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        expected = network(image)
        program = torch.export.export(network, (image,))
    machine = machine_of(to_relax(program, "test"), UNOPTIMIZED)
    found = _leaves(machine["main"](tvm.runtime.tensor(IMAGE)))
    names = [name for name, one in zip(functions, expected, strict=True) for _ in _flat(one)]
    for name, own, theirs in zip(names, found, _flat(expected), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-5, err_msg=name)


def _flat(value: Any) -> list[np.ndarray]:
    return [one.numpy() for one in pytree.tree_leaves(value)]


@pytest.mark.parametrize("functions", _groups())
def test_quantized_functions_run_on_npu_or_are_the_hosts_for_a_reason(
    functions: dict[str, Function],
) -> None:
    network = Many(functions, linear=True)
    quantized = quantize(SourceModel("test", network, (IMAGE,), ("image",)), observer="minmax")
    layers = {layer.name for layer in read_network(quantized.qdq).layers}
    legalized = legalize(quantized)
    hosts = {one.name: one.reason for one in legalized.host_ops}
    placed = {name for names in legalized.layers.values() for name in names} | set(hosts)
    assert len(layers) >= len(functions)
    assert layers <= placed
    assert all(reason and "\n" not in reason for reason in hosts.values())


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_function_is_refused_in_one_sentence_with_its_layer(name: str) -> None:
    network = Many({name: UNKNOWN[name]}, linear=False)
    with pytest.raises(ModelError, match=r"layer '.*' of model test calls aten\.") as caught:
        quantize(SourceModel("test", network, (IMAGE,), ("image",)), observer="minmax")
    assert "\n" not in str(caught.value)
