"""ONNX's own node tests: each operator that float models may have gives what ONNX says it does.

A test that the importer refuses is listed in `onnx_nodes.toml` with the reason; every other one
must run and be equal.
"""

from __future__ import annotations

import pytest

from accelsim.importer.floats.onnx_graph import operators
from tests.importer.onnx_nodes import listed, node_tests, operator_of, verdict

OPERATORS = sorted(operators())
WITHOUT_TESTS = {"GlobalLpPool"}
"""Held to ONNX Runtime by `test_float_onnx` alone."""


def faults(names: list[str]) -> dict[str, str]:
    """Tests that differ from ONNX, or from the list of those that are refused."""
    found = {}
    for name in names:
        result = verdict(name)
        if result.wrong:
            found[name] = result.wrong
        elif result.refused != listed().get(name, ""):
            found[name] = f"refused: {result.refused or 'no'}, listed: {listed().get(name, 'no')}"
    return found


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_passes_every_node_test_that_is_not_listed(operator: str) -> None:
    names = [name for name in node_tests() if operator_of(name) == operator]
    assert faults(names) == {}
    ran = sum(verdict(name).forms for name in names)
    assert ran > 0 or operator in WITHOUT_TESTS


def test_functions_spelled_out_as_several_nodes_pass_too() -> None:
    names = [name for name in node_tests() if not operator_of(name)]
    assert len(names) > 400
    assert faults(names) == {}


def test_every_other_operator_is_refused_in_a_sentence() -> None:
    names = [name for name in node_tests() if operator_of(name) not in ("", *OPERATORS)]
    assert len(names) > 200
    assert faults(names) == {}
    assert not any(verdict(name).forms for name in names)


def test_the_list_has_no_test_that_onnx_has_not() -> None:
    assert set(listed()) <= set(node_tests())
