"""The operators, one module a family: all that the proofs of a family need to know is in its file.

A module defines `OPERATORS`, a tuple of `accelsim.ops.operator.Operator`, and that is all: modules
of this folder are found at the first use of `known_operators()`; no list names them. It takes

* `Spec` and its kin from `ops.case`: a family with attributes of its own (a window, an axis)
  derives a frozen, slotted dataclass from `Spec` and names it in `Operator.spec`. Each field has a
  default; `sized(default, simplest)` says where a failing case shrinks to;
* what families draw alike from `ops.values` (`activation`, `weighted`, `drawn`, …), common edge
  cases from `ops.edges`;
* `Builder` and `constant` from `ops.modules` for the Relax form; `quantized_tensor` from
  `ops.torch_kernels` for PyTorch's kernels.

Shapes are PyTorch's: (n, c, h, w), (n, s, c) or (n, k); inputs may differ in shape and number
(`Case.inputs`), be constant (`Case.constant`, `Case.arrays`), and the output may keep the input's
quantization (give `Case` the input's scale and zero point).

A package of somebody else calls `register(operator)`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from accelsim.discovery import module_names
from accelsim.errors import InputError
from accelsim.ops.operator import Operator


def known_operators() -> Mapping[str, Operator]:
    """Operators by name: those of this folder in the order of their modules, then registered ones.

    Raises InputError where two have one name.
    """
    return MappingProxyType(_known())


def operator_of(name: str) -> Operator:
    """The operator of that name. Raises InputError, with the nearest names, if there is none."""
    known = _known()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or sorted(known)
        raise InputError(f"unknown operator {name!r}: use {', '.join(near)}")
    return known[name]


def register(operator: Operator) -> None:
    """Add an operator. Raises InputError if one of that name is there."""
    _add(_known(), operator)


@cache
def module_of() -> Mapping[str, str]:
    """Family, the name of its module, by operator; registered operators have none."""
    return {one.name: family for family in families() for one in _module(family)}


def families() -> tuple[str, ...]:
    """Names of the modules of this folder."""
    return tuple(module_names(__name__))


@cache
def _known() -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    for family in families():
        for operator in _module(family):
            _add(found, operator)
    return found


def _module(family: str) -> tuple[Operator, ...]:
    found: tuple[Operator, ...] = importlib.import_module(f"{__name__}.{family}").OPERATORS
    return found


def _add(known: dict[str, Operator], operator: Operator) -> None:
    if operator.name in known:
        raise InputError(f"the operator {operator.name!r} is there already: choose another name")
    known[operator.name] = operator
