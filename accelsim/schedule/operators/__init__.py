"""Schedulers, one module a family of operators, found by the type of `Layer.compute`.

A module of this package ends with `OPERATORS`, a tuple of `Operator`. The package looks through its
own folder at the first question, so a new operator is one new file here. A team's own operator
is added by `register`.

A scheduler gets the builder, the layer's index in the region, the layer, and the DRAM extents of
all tensors. It appends units to `builder.units` and returns facts of its tiling; "tiles" must be
among them, and "macs" where products are counted. It raises ModelError, naming the layer, the
limit and the way out, for what the NPU cannot do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from accelsim.artifacts import Layer, TensorExtent
from accelsim.discovery import modules_in
from accelsim.errors import InputError, ModelError
from accelsim.schedule.build import Builder

Scheduler = Callable[[Builder, int, Layer, dict[str, TensorExtent]], dict[str, int]]


@dataclass(frozen=True, slots=True)
class Operator:
    """How one type of `Layer.compute` becomes steps."""

    compute: type
    schedule: Scheduler


@cache
def _known() -> dict[type, Operator]:
    """All operators by type: those of this folder, and those registered since."""
    found: dict[type, Operator] = {}
    for module in modules_in(__name__):
        for operator in module.OPERATORS:
            _add(found, operator)
    return found


def _add(known: dict[type, Operator], operator: Operator) -> None:
    if operator.compute in known:
        raise InputError(f"a scheduler of {operator.compute.__name__} is registered already")
    known[operator.compute] = operator


def register(operator: Operator) -> None:
    """Add an operator. Raises InputError where its type has a scheduler already."""
    _add(_known(), operator)


def find(layer: Layer) -> Operator:
    """The operator of a layer. Raises ModelError that names the layer where there is none."""
    known = _known()
    if type(layer.compute) not in known:
        raise ModelError(
            f"layer {layer.name}: no schedule for {type(layer.compute).__name__}; known are "
            f"{', '.join(sorted(t.__name__ for t in known))}"
        )
    return known[type(layer.compute)]
