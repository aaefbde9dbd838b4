"""Operators are found in their folder, added by others, and never twice under one name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.ops import Batch, Stage, known_operators, make_case, operator_of, register, specs_of
from accelsim.ops import operators as package
from accelsim.ops.operators import families, module_of
from accelsim.ops.stages import arithmetic, run
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]
MODULE = """
from dataclasses import replace
from accelsim.ops.operators.add import OPERATORS as ADD
OPERATORS = (replace(ADD[0], name="plus"),)
"""


def test_every_module_of_the_folder_has_operators() -> None:
    assert set(module_of().values()) == set(families())
    assert set(module_of()) == set(known_operators())


def test_a_new_file_in_the_folder_is_an_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plus.py").write_text(MODULE)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    package._known.cache_clear()
    try:
        assert operator_of("plus").name == "plus" and operator_of("add").name == "add"
    finally:
        package._known.cache_clear()


def test_a_name_cannot_be_registered_twice(known: dict[str, object]) -> None:
    register(replace(operator_of("add"), name="plus"))
    assert known_operators()["plus"].name == "plus"
    with pytest.raises(InputError, match="'plus' is there already"):
        register(operator_of("plus"))


def test_unknown_operator_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InputError, match="unknown operator 'conv3d': use conv"):
        operator_of("conv3d")


def clip_without_kernel(known: dict[str, object], **changes: object) -> Batch:
    """A batch of clip under another name, of which PyTorch is said to have no quantized kernel."""
    operator = replace(operator_of("clip"), name="clip_float", quantized=None, **changes)
    register(operator)
    spec = specs_of(operator, EDGE8, 1, 0)[0]
    return Batch([make_case("clip_float", spec, 1)])


def test_operator_without_a_quantized_kernel_is_held_to_the_float_one(
    known: dict[str, object],
) -> None:
    batch = clip_without_kernel(known)
    outcome = arithmetic(batch, batch.cases["clip_float/plain"], Stage.TORCH)
    assert outcome.elements == 240 and not outcome.failed and outcome.attributed == 0


@pytest.mark.parametrize(
    ("steps", "cause", "failed", "attributed"),
    [(0, "known", True, 0), (1, "known", False, 1), (1, None, True, 0)],
)
def test_difference_counts_only_within_the_bound_and_with_a_cause(
    known: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
    cause: str | None,
    failed: bool,
    attributed: int,
) -> None:
    batch = clip_without_kernel(known, steps=steps, cause=lambda case, golden, torch: cause)
    case, right = batch.cases["clip_float/plain"], batch.stored
    one = np.zeros((1, 8, 5, 6), np.uint8)
    one[0, 4, 2, 3] = 1
    monkeypatch.setattr(batch, "stored", lambda name, values: right(name, values) ^ one)
    outcome = arithmetic(batch, case, Stage.TORCH)
    assert (outcome.failed, outcome.attributed) == (failed, attributed)
    assert outcome.cause == ("known" if attributed else "")


def test_difference_beyond_a_tie_has_no_cause(
    known: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = clip_without_kernel(known, steps=1)
    right = batch.stored
    monkeypatch.setattr(batch, "stored", lambda name, values: right(name, values) ^ np.uint8(1))
    outcome = arithmetic(batch, batch.cases["clip_float/plain"], Stage.TORCH)
    assert outcome.mismatches == 240 and "without a known cause" in outcome.detail


def test_expansion_of_a_product_that_is_none_differs(known: dict[str, object]) -> None:
    from tvm import relax

    def squared(build: object, case: object, x: object, weight: object) -> object:
        return build.emit(relax.op.multiply(x, x))  # type: ignore[attr-defined]

    register(replace(operator_of("linear"), name="square", product=squared))
    spec = specs_of(operator_of("square"), EDGE8, 1, 0)[0]
    batch = Batch([make_case("square", replace(spec, zeros=(7, 9)), 1)])
    assert arithmetic(batch, batch.cases["square/plain"], Stage.EXPANSION).failed


@pytest.mark.parametrize(("few", "failed"), [("", True), ("all values are alike", False)])
def test_golden_of_few_values_proves_nothing_unless_its_case_says_why(
    few: str, failed: bool
) -> None:
    spec = operator_of("add").edges(EDGE8)[0]
    case = make_case("add", replace(spec, zeros=(0, 0, 0), spread=0.001, few=few), 1)
    batch = Batch([case])
    outcome = run(batch, case, Stage.SIM, EDGE8, (Simulator(EDGE8).run,))
    assert outcome.failed == failed and ("distinct values" in outcome.detail) == failed


def test_a_case_that_rounds_otherwise_is_held_to_pytorch_in_its_rounding() -> None:
    specs = [spec for spec in operator_of("conv2d").edges(EDGE8) if spec.rounding == "tflite"]
    batch = Batch([make_case("conv2d", spec, 1) for spec in specs])
    outcomes = [arithmetic(batch, case, Stage.TORCH) for case in batch.cases.values()]
    assert not any(outcome.failed for outcome in outcomes)
    causes = {outcome.cause for outcome in outcomes if outcome.attributed}
    assert len(causes) == 1 and "rounds as tflite" in causes.pop()
