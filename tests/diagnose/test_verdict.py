"""Which fault evidence tells of: hand-made rungs, facts and comparisons, one wrong at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from accelsim.artifacts import Comparison, Difference, LayerReport
from accelsim.diagnose.record import InputFacts, LayerRow, Rung
from accelsim.diagnose.rungs import first_change
from accelsim.diagnose.verdict import Evidence, faults
from accelsim.verify.layers import Whole

NAMES = ("float", "framework", "qdq", "integer", "sim", "rtl")
FITTING = InputFacts("x", 0.0, 1.0, 0.0, 1.0, clipped=0.0, levels=200)


def rung(name: str, classes: tuple[int, ...] | None = (3,), db: float | None = 30.0) -> Rung:
    return Rung(name, f"the {name}", (np.zeros((1, 4)),), classes, (), db)


def rungs(**classes: int) -> list[Rung]:
    """All rungs say 3 but those that are named."""
    return [rung(name, (classes.get(name, 3),)) for name in NAMES]


def compared(actual: str, golden: str, mode: str = "isolated", **changes: Any) -> Comparison:
    plain = Comparison(actual, golden, mode, 100, 0, 0, "equal", golden == "integer")
    return dataclasses.replace(plain, **changes)


def wrong(actual: str, golden: str, mode: str = "isolated", value: int = 9) -> Comparison:
    first = Difference((0, 1, 2, 3), 5, value, 0, 4, "conv")
    changes: dict[str, Any] = {"status": "different", "mismatches": 7, "max_abs_diff": 4}
    return compared(actual, golden, mode, **changes, gate=True, first=first)


def layer(name: str, *comparisons: Comparison) -> LayerReport:
    return LayerReport(name, "conv2d", (), "npu", 100, 100, 1, comparisons, {})


def kinds(**changes: Any) -> list[tuple[str, str]]:
    """(kind, layer) of the faults of evidence that is sound but for the changes."""
    sound: dict[str, Any] = {
        "rungs": rungs(),
        "label": 3,
        "inputs": [FITTING],
        "traps": [],
        "rows": [],
        "layers": [layer("a", *(compared(b, "integer") for b in ("sim", "rtl")))],
        "drift": "",
        "backends": ("sim", "rtl"),
        "whole": Whole(),
    }
    return [(one.kind, one.layer) for one in faults(Evidence(**(sound | changes)))]


def test_nothing_wrong_has_no_fault() -> None:
    assert kinds() == []


def test_a_float_network_that_is_wrong_is_blamed_before_anything_else() -> None:
    both = layer("a", wrong("sim", "integer"), compared("rtl", "integer"))
    given = [rung(name, (1 if name == "float" else 2,)) for name in NAMES]
    assert kinds(rungs=given, layers=[both]) == [("preprocessing", ""), ("simulator", "a")]
    assert kinds(rungs=given, label=None) == [("quantization", "")]


@pytest.mark.parametrize(
    ("facts", "framework", "found"),
    [
        ({"clipped": 0.5, "high": 1.9}, 3, []),  # it saturates, and the class stays
        ({"clipped": 0.5, "high": 1.9}, 2, ["preprocessing"]),
        ({"clipped": 0.005, "high": 1.9}, 2, ["quantization"]),
        ({"clipped": 0.5, "high": 2.1}, 3, ["preprocessing"]),
        ({"clipped": 0.5, "low": -1.1}, 3, ["preprocessing"]),
        ({"levels": 3, "high": 0.01}, 3, ["preprocessing"]),
        ({"levels": 4, "high": 0.01}, 3, []),
        ({"levels": 1, "high": 0.0}, 3, []),  # one value has one level
    ],
)
def test_an_input_beside_the_calibrated_range_is_preprocessing(
    facts: dict[str, Any], framework: int, found: list[str]
) -> None:
    changed = dataclasses.replace(FITTING, **facts)
    others = dict.fromkeys(("framework", "qdq", "integer", "sim", "rtl"), framework)
    assert [kind for kind, _ in kinds(inputs=[changed], rungs=rungs(**others))] == found


def test_quantization_names_the_layer_that_lost_most() -> None:
    rows = [LayerRow("a", "conv2d", 30, 5, 0), LayerRow("b", "conv2d", 5, 25, 0.5)]
    others = dict.fromkeys(("framework", "qdq", "integer", "sim", "rtl"), 2)
    assert kinds(rungs=rungs(**others), rows=rows) == [("quantization", "b")]


def test_without_a_framework_the_qdq_graph_is_the_first_int8_rung() -> None:
    silent = dataclasses.replace(rung("framework"), outputs=None, classes=None)
    given = rungs(qdq=2, integer=2, sim=2, rtl=2)
    given[1] = silent
    assert kinds(rungs=given) == [("quantization", "")]


@pytest.mark.parametrize(("db", "found"), [(9.0, ["quantization"]), (11.0, [])])
def test_an_output_without_classes_is_another_where_noise_drowns_it(
    db: float, found: list[str]
) -> None:
    given = [rung(name, None, db if name == "framework" else 30.0) for name in NAMES]
    assert [kind for kind, _ in kinds(rungs=given, label=None)] == found


def test_a_rounding_of_tvm_alone_is_a_near_tie() -> None:
    assert kinds(rungs=rungs(qdq=2)) == [("quantization", "")]


def test_an_integer_reference_beside_the_framework_is_the_compiler() -> None:
    def reports(*own: Comparison) -> list[LayerReport]:
        return [layer("a", compared("sim", "integer")), layer("b", *own)]

    own, ungated = wrong("sim", "framework"), wrong("sim", "framework")
    ungated = dataclasses.replace(ungated, gate=False)
    assert kinds(layers=reports(compared("sim", "integer"), own)) == [("compiler", "b")]
    assert kinds(layers=reports(compared("sim", "integer"), ungated)) == []
    # Where the simulator is wrong itself, the framework says nothing about the reference.
    assert kinds(layers=reports(wrong("sim", "integer"), own)) == [("simulator", "b")]


def test_differences_that_add_up_name_the_layer_where_they_begin() -> None:
    given = rungs(qdq=2, integer=2, sim=2, rtl=2)
    assert kinds(rungs=given, drift="b") == [("compiler", "b")]


@pytest.mark.parametrize(
    ("sim", "rtl", "found"),
    [
        (("a", "isolated", 9), None, [("simulator", "a")]),
        (None, ("b", "isolated", 9), [("rtl", "b")]),
        (None, ("b", "accumulated", 9), [("rtl", "b")]),
        (("a", "isolated", 9), ("a", "isolated", 9), [("compiler", "a")]),
        (("a", "isolated", 9), ("a", "isolated", 8), [("simulator", "a"), ("rtl", "a")]),
        (("a", "isolated", 9), ("a", "accumulated", 9), [("simulator", "a"), ("rtl", "a")]),
        (("a", "isolated", 9), ("b", "isolated", 9), [("simulator", "a"), ("rtl", "b")]),
    ],
)
def test_a_backend_that_differs_alone_is_to_blame(sim: Any, rtl: Any, found: Any) -> None:
    def reports(name: str) -> LayerReport:
        given = []
        for backend, place in (("sim", sim), ("rtl", rtl)):
            for mode in ("isolated", "accumulated"):
                bad = place is not None and place[:2] == (name, mode)
                given.append(
                    wrong(backend, "integer", mode, place[2])
                    if bad
                    else compared(backend, "integer", mode)
                )
        return layer(name, *given)

    assert kinds(layers=[reports("a"), reports("b")]) == found


def test_a_layer_that_is_wrong_alone_comes_before_one_that_is_wrong_in_the_network() -> None:
    first = layer("a", wrong("sim", "integer", "accumulated"))
    second = layer("b", wrong("sim", "integer"))
    assert kinds(layers=[first, second], backends=("sim",)) == [("simulator", "b")]


def test_a_result_that_is_missing_is_the_backend() -> None:
    gone = compared("rtl", "integer", status="missing", cause="the watchdog ended it")
    reports = [layer("a", compared("sim", "integer"), gone)]
    assert kinds(layers=reports) == [("rtl", "a")]


def test_a_backend_that_stopped_in_the_whole_network_is_to_blame() -> None:
    assert kinds(whole=Whole(failures={"rtl": "it stopped"})) == [("rtl", "")]


def test_equal_layers_and_another_class_are_the_compiler() -> None:
    assert kinds(rungs=rungs(sim=2), backends=("sim",)) == [("compiler", "")]


@pytest.mark.parametrize(
    ("classes", "label", "found"),
    [
        ({}, 3, ""),
        ({}, 2, "float"),
        ({"qdq": 2}, 3, "qdq"),
        ({"integer": 2}, None, "integer"),
        ({"float": 2}, None, "framework"),
        ({"float": 2}, 3, "float"),
        ({"sim": 1, "rtl": 1}, None, "sim"),
    ],
)
def test_the_class_changes_first_where_it_is_not_the_label_or_the_one_before(
    classes: dict[str, int], label: int | None, found: str
) -> None:
    assert first_change(rungs(**classes), label) == found
