"""The operators that have vectors, one module a family.

A module defines `CASES`, a mapping from the vector's name to its `OperatorCase`. Modules of this
folder are found at the first use of `operator_cases()`, and no list names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from accelsim.discovery import modules_in
from accelsim.errors import InputError
from accelsim.vectors.module import OperatorCase


@cache
def operator_cases() -> Mapping[str, OperatorCase]:
    """Vectors by name. Raises InputError where two have one name."""
    found: dict[str, OperatorCase] = {}
    for family in modules_in(__name__):
        cases: Mapping[str, OperatorCase] = family.CASES
        twice = found.keys() & cases.keys()
        if twice:
            raise InputError(f"two vectors are named {min(twice)!r}: choose another name")
        found.update(cases)
    return MappingProxyType(found)
