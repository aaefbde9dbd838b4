"""Drawn cases that fail become small, and one command replays the small one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from accelsim.errors import ModelError
from accelsim.ops import Spec, Stage, known_operators, operator_of, specs_of
from accelsim.ops.__main__ import main
from accelsim.ops.case import sized
from accelsim.ops.session import Item, Selection, Session
from accelsim.ops.shrink import shrink
from accelsim.ops.specs import from_json, to_json
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]


@dataclass(frozen=True, slots=True)
class Strided(Spec):
    """A spec with an attribute of its own."""

    stride: tuple[int, int] = sized((2, 2), 1)


LARGE = Strided(
    "large", batch=3, channels=40, size=(9, 30), zeros=(0, 255), relu=True, stride=(4, 7)
)


def test_only_what_makes_a_case_fail_is_left() -> None:
    small = shrink(LARGE, lambda spec: spec.channels >= 11 and spec.stride[1] > 2, tries=1000)
    assert small == Strided("large", channels=11, size=(1, 1), zeros=(128, 128), stride=(1, 3))


def test_a_case_that_no_simpler_one_repeats_stays_as_it_is() -> None:
    assert shrink(LARGE, lambda spec: False) == LARGE


def test_tries_are_counted() -> None:
    seen = []
    shrink(LARGE, lambda spec: bool(seen.append(spec)), tries=5)
    assert len(seen) == 5


@pytest.mark.parametrize("operator", known_operators())
def test_every_case_survives_its_way_through_json(operator: str) -> None:
    known = operator_of(operator)
    for spec in specs_of(known, EDGE8, 1, 3):
        assert from_json(known, to_json(spec)) == spec


@pytest.mark.parametrize("operator", known_operators())
def test_every_case_is_legal(operator: str) -> None:
    known = operator_of(operator)
    for config in CONFIGS.values():
        assert all(known.legal(spec) for spec in specs_of(known, config, 1, 8))


def test_planted_bug_ends_as_a_small_case_with_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = Item("conv2d", "random1", Stage.SIM, "edge8")
    session = Session(Selection(("conv2d",), (EDGE8,), bug="conv_sign"))
    outcome = session.run(item)
    assert outcome.elements > 100
    *_, made, replay = session.failure(item, outcome).splitlines()
    assert "1 of 1 elements differ" in made
    words = shlex.split(replay.removeprefix("replay: "))
    assert words[:4] == ["nox", "-s", "ops", "--"] and words.count("--case") == 1
    quiet = ["--results", str(tmp_path / "results.json"), f"--junitxml={tmp_path / 'ops.xml'}"]
    assert main([*words[4:], *quiet]) == 1
    assert "1 of 1 elements differ" in capsys.readouterr().out
    right = words[4 : words.index("--bug")]
    assert main([*right, *quiet]) == 0


def test_an_error_shrinks_to_a_case_with_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(session: Session, item: Item, spec: Spec, batch: object) -> None:
        if spec.channels < 4:
            raise ModelError("another reason")
        raise ModelError(f"conv of {spec.channels} channels has no tiling")

    monkeypatch.setattr(Session, "_run", refused)
    session = Session(Selection(("conv2d",), (EDGE8,)))
    item = Item("conv2d", "random1", Stage.SIM, "edge8")
    with pytest.raises(ModelError) as raised:
        session.run(item)
    failure = session.failure(item, raised.value)
    assert '"channels": 4, "size": [1, 1]' in failure
    assert "made smaller: ModelError: conv of 4 channels" in failure
