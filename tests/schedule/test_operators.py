"""Operators are found by the type of what a layer computes, and a team adds its own."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

import pytest

from accelsim.artifacts import Layer, Pool2d, Region, Tensor
from accelsim.errors import InputError, ModelError
from accelsim.schedule import Operator, operators, register, schedule
from accelsim.spec.config import CONFIGS
from tests.schedule import layers

EDGE8 = CONFIGS["edge8"]


@dataclass(frozen=True, slots=True)
class Largest:
    """Maximum of each 2×2 window: an operator that no room knows."""


def region() -> Region:
    tensors = {"x": Tensor("x", (1, 4, 4, 8), 0, 1.0), "y": Tensor("y", (1, 2, 2, 8), 0, 1.0)}
    layer = Layer("y", "largest", ("y",), ("x",), "y", Largest())  # type: ignore[arg-type]
    return Region("own", tensors, ("x",), ("y",), (layer,))


def test_a_registered_operator_is_scheduled_once_it_is_known() -> None:
    with pytest.raises(ModelError, match=r"layer y: no schedule for Largest; known are Add, "):
        schedule(region(), EDGE8)
    pool = operators.find(layers.region((1, 4, 4, 8), layers.pool("max", (2, 2), (2, 2))).layers[0])
    assert pool.compute is Pool2d

    def largest(builder, index, layer, tensors):  # type: ignore[no-untyped-def]
        own = Layer(
            layer.name, "", (), layer.inputs, layer.output, layers.pool("max", (2, 2), (2, 2))
        )
        return pool.schedule(builder, index, own, tensors)

    register(Operator(Largest, largest))
    assert [s.instruction for s in schedule(region(), EDGE8).steps] == ["load", "pool", "store"]
    with pytest.raises(InputError, match="a scheduler of Largest is registered already"):
        register(Operator(Largest, largest))


def test_every_module_of_the_package_gives_operators() -> None:
    names = [m.name for m in pkgutil.iter_modules(operators.__path__)]
    assert len(names) > 2
    for name in names:
        found = importlib.import_module(f"{operators.__name__}.{name}").OPERATORS
        assert found, name
        assert all(isinstance(o, Operator) for o in found)
