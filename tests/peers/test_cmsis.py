"""CMSIS-NN's cases are read, equal their goldens as layers, and on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.peers.case import PeerCase, Trial, UnreadableError
from accelsim.peers.cmsis import discover, load
from accelsim.peers.definition import tensors
from accelsim.peers.outcome import FAILED, PASSED
from accelsim.peers.run import run
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS

EDGE8 = CONFIGS["edge8"]
WEIGHTS = "#include <stdint.h>\nconst int8_t c_weights[2] = {3, -4};\n"
POOL = {
    "BATCH_SIZE": 1,
    "INPUT_W": 2,
    "INPUT_H": 1,
    "INPUT_C": 1,
    "FILTER_W": 2,
    "FILTER_H": 1,
    "STRIDE_W": 1,
    "STRIDE_H": 1,
    "OUTPUT_W": 1,
    "OUTPUT_H": 1,
}


def written(folder: Path, macros: dict[str, object], **arrays: list[int]) -> Path:
    """A case of one kernel as CMSIS-NN lays it out."""
    name = folder.name
    lines = [f"#define {name.upper()}_{key} {value}" for key, value in macros.items()]
    for key, values in arrays.items():
        text = ", ".join(map(str, values))
        lines.append(f"const int8_t {name}_{key}[{len(values)}] = {{{text}}};")
    folder.mkdir()
    (folder / "all.h").write_text("\n".join(lines), encoding="utf-8")
    (folder / "test_data.h").write_text('#include "all.h"\n', encoding="utf-8")
    return folder


def test_specification_gives_every_golden(data: Path) -> None:
    cases = list(discover("cmsis_nn", data))
    different = []
    for case in cases:
        trial = case.load()
        computed = tensors(trial.region, trial.inputs)
        if any(not np.array_equal(computed[n], e) for n, e in trial.expected.items()):
            different.append(case.name)
    assert different == []
    assert len(cases) == sum(path.is_dir() for path in (data / "cmsis_nn").iterdir()) >= 44


def test_simulator_gives_every_golden(data: Path) -> None:
    backends = [Simulator(EDGE8).run]
    outcomes = [run(case, EDGE8, backends) for case in discover("cmsis_nn", data)]
    assert [o for o in outcomes if o.status != PASSED] == []
    assert all(o.elements and not o.mismatches for o in outcomes)


def test_wrong_golden_fails(data: Path) -> None:
    case = next(case for case in discover("cmsis_nn", data) if case.name == "add")
    trial = case.load()
    ((name, golden),) = trial.expected.items()
    wrong = golden.copy()
    wrong[0, 0, 0, 5] ^= 1
    planted = PeerCase("cmsis_nn", "add", lambda: replace(trial, expected={name: wrong}))
    outcome = run(planted, EDGE8, [Simulator(EDGE8).run])
    assert (outcome.status, outcome.mismatches, outcome.largest) == (FAILED, 1, 1)
    assert "(0, 0, 0, 5)" in outcome.detail


def test_stale_header_is_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "x_max", POOL, input_tensor=[1, 2], output=[2])
    (folder / "stale.h").write_text(WEIGHTS, encoding="utf-8")
    assert load(folder).expected["y0"].item() == 2


@pytest.mark.parametrize(("golden", "kind"), [(4, "max"), (3, "sum")])
def test_golden_tells_poolings_apart_where_no_name_does(
    golden: int, kind: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "thing", POOL, input_tensor=[1, 4], output=[golden])
    (layer,) = load(folder).region.layers
    assert layer.compute.kind == kind  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "all.h").unlink(), "cannot read all.h"),
        (lambda folder: (folder / "test_data.h").unlink(), "cannot read test_data.h"),
        (lambda folder: replace_text(folder, "[2]", "[3]"), "has 2 values, declared are 3"),
        (lambda folder: replace_text(folder, "{1, 4}", "{1, 400}"), "does not fit into int8_t"),
        (lambda folder: replace_text(folder, "{1, 4}", "{1, 4.5}"), "only integers are read"),
        (lambda folder: replace_text(folder, "INPUT_W 2", "INPUT_W 3"), "has 2 values"),
        (
            lambda folder: replace_text(folder, "FILTER_W 2", "FILTER_W 02"),
            "x_max/all.h: X_MAX_FILTER_W is '02', expected an integer",
        ),
        (
            lambda folder: replace_text(folder, "STRIDE_H 1", "STRIDE_H -1"),
            "x_max/all.h: X_MAX_STRIDE_H is -1, expected 1 to 256",
        ),
        (lambda folder: replace_text(folder, "OUTPUT_H 1", "OUTPUT_H 0"), "OUTPUT_H is 0, expect"),
        (lambda folder: replace_text(folder, "FILTER_W", "FILTER_X"), "no known kernel"),
        (lambda folder: replace_text(folder, "OUTPUT_H", "OUTPUT_Z"), "OUTPUT_H"),
    ],
)
def test_malformed_case_is_refused(
    spoil: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "x_max", POOL, input_tensor=[1, 4], output=[4])
    spoil(folder)
    with pytest.raises(UnreadableError, match=said.replace("[", "\\[")):
        load(folder)


def test_average_of_a_window_outside_the_input_is_refused(tmp_path: Path) -> None:
    macros = POOL | {"OUTPUT_W": 3, "STRIDE_W": 2}
    folder = written(tmp_path / "x_avg", macros, input_tensor=[1, 4], output=[2, 0, 0])
    with pytest.raises(UnreadableError, match="OUTPUT_W is 3, and a window lies outside"):
        load(folder)


def replace_text(folder: Path, old: str, new: str) -> None:
    """Change the planted header."""
    text = (folder / "all.h").read_text(encoding="utf-8")
    assert old in text
    (folder / "all.h").write_text(text.replace(old, new), encoding="utf-8")


def test_unreadable_case_fails_and_is_no_skip() -> None:
    def load_nothing() -> Trial:
        raise UnreadableError("x: cannot read test_data.h")

    outcome = run(PeerCase("cmsis_nn", "x", load_nothing), EDGE8, [])
    assert outcome.status == FAILED
