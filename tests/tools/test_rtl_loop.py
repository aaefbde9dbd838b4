"""The loop for one module finds its tests, or those of what instantiates it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.artifacts import Launch, RunResult
from accelsim.errors import ToolError
from accelsim.ops import known_operators
from accelsim.simulate import Simulator
from accelsim.sources import rtl_root, vectors_root
from accelsim.spec.config import CONFIGS
from accelsim.vectors.case import read_case
from tools import rtl_lint, rtl_loop, rtl_operators

EDGE8 = CONFIGS["edge8"]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """RTL of three levels, tests of the middle one through a wrapper and of the top."""
    rtl, tests = tmp_path / "rtl", tmp_path / "tests"
    (tests / "mid").mkdir(parents=True)
    rtl.mkdir()
    (rtl / "leaf.sv").write_text("module leaf;\nendmodule\n")
    (rtl / "mid.sv").write_text("module mid;\n  leaf u_leaf ();\nendmodule\n")
    (rtl / "top.sv").write_text("module top;  // leaf\n  mid u_mid ();\nendmodule\n")
    (rtl / "alone.sv").write_text("module alone;\nendmodule\n")
    (tests / "mid/bench.sv").write_text("module bench;\n  mid u_mid ();\nendmodule\n")
    (tests / "mid/test_bench.py").write_text("run_unit('bench')\n")
    (tests / "test_top.py").write_text("run_unit('top')\n")
    return rtl, tests


@pytest.mark.parametrize(
    ("module", "through", "files"),
    [
        ("mid", ("mid",), ("test_bench.py",)),
        ("leaf", ("mid",), ("test_bench.py",)),
        ("top", ("top",), ("test_top.py",)),
        ("alone", (), ()),
    ],
)
def test_nearest_tests_of_a_module_are_found(
    places: tuple[Path, Path], module: str, through: tuple[str, ...], files: tuple[str, ...]
) -> None:
    found = rtl_loop.nearest_tests(*places, module)
    assert (found[0], tuple(path.name for path in found[1])) == (through, files)


def test_unknown_module_is_refused_with_the_nearest_names(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rtl_loop, "ROOT", places[0].parent)
    assert rtl_loop.main(["leef"]) == 2
    said = capsys.readouterr().err
    assert "nearest: leaf" in said and "modules: alone, leaf, mid, top" in said


def test_missing_module_name_is_refused() -> None:
    assert rtl_loop.main([]) == 2


def wrong_byte(launch: Launch) -> RunResult:
    """The simulator's result with every byte changed."""
    result = Simulator(EDGE8).run(launch)
    return replace(result, dram={b: m ^ np.uint8(1) for b, m in result.dram.items()})


def wrong_output(launch: Launch) -> RunResult:
    """The simulator's result with the first element of the output changed."""
    result = Simulator(EDGE8).run(launch)
    output = launch.program.tensors[launch.program.layers[-1].output]
    result.dram[output.base][output.offset_bytes] ^= 1
    return result


@pytest.mark.parametrize(
    ("module", "instructions"),
    [
        ("npu_matrix_walk", ("conv", "dwconv")),
        ("npu_matrix_depthwise", ("dwconv",)),
        ("npu_fp_mul", rtl_operators.SCALED),
        ("npu_scale_round", rtl_operators.SCALED),
        ("npu_semaphores", rtl_operators.ALL),
        ("axi_memory", rtl_operators.ALL),
    ],
)
def test_module_belongs_to_instructions(module: str, instructions: tuple[str, ...]) -> None:
    assert rtl_operators.reach(module)[1] == instructions


def test_operators_of_a_module_are_those_whose_programs_use_its_instructions() -> None:
    names = [one.name for one in rtl_operators.operators_with(("dwconv",))]
    assert names == ["batch_norm", "depthwise_conv2d", "resize_bilinear"]
    assert {one.name for one in rtl_operators.operators_with(rtl_operators.ALL)} == set(
        known_operators()
    )


def test_every_prefix_names_modules_that_exist() -> None:
    modules = [path.stem for path in rtl_lint.hand_written(rtl_root())]
    assert all(any(m.startswith(prefix) for m in modules) for prefix in rtl_operators.ENGINES)


def test_every_instruction_has_a_vector_in_the_configuration_of_the_loop() -> None:
    masks = [read_case(f).opcode_mask for f in (vectors_root() / rtl_loop.CONFIG).iterdir()]
    for name in rtl_operators.ALL:
        assert any(rtl_operators.uses(mask, (name,)) for mask in masks), name


def test_layers_of_a_right_backend_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert rtl_loop.layers_right(("conv", "dwconv"), Simulator(EDGE8).run)
    said = capsys.readouterr().out
    assert "layer conv2d: " in said and said.count(", right") == said.count("layer ") > 2


def test_wrong_layers_and_vectors_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [read_case(vectors_root() / "edge8/max_pool")]
    assert rtl_loop.right(cases, Simulator(EDGE8).run)
    assert not rtl_loop.right(cases, wrong_byte)
    assert "WRONG: byte" in capsys.readouterr().out
    assert not rtl_loop.layers_right(("dwconv",), wrong_output)
    assert "WRONG in 1" in capsys.readouterr().out


def planted(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, unit: int) -> None:
    """The loop over the planted modules, with unit tests that end in status `unit`."""
    monkeypatch.setattr(rtl_loop, "ROOT", places[0].parent)
    monkeypatch.setattr(rtl_loop, "nearest_tests", lambda *_: (("leaf",), (Path("test_x.py"),)))
    monkeypatch.setattr(rtl_lint, "main", lambda _: 0)
    done = subprocess.CompletedProcess[str]((), unit)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


@pytest.mark.parametrize(("good", "status"), [(True, 0), (False, 1)])
def test_status_follows_the_whole_npu_and_the_rest_is_named(
    good: bool,
    status: int,
    places: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planted(places, monkeypatch, 0)
    monkeypatch.setattr(rtl_loop, "on_rtl", lambda _: (good, "max_pool"))
    assert rtl_loop.main(["leaf"]) == status
    said = capsys.readouterr().out
    assert "Not run:" in said and "vectors max_pool" in said and "base16" in said


def test_failed_build_is_one_sentence_and_status_1(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(instructions: tuple[str, ...]) -> tuple[bool, str]:
        raise ToolError("building npu_tb failed.")

    planted(places, monkeypatch, 0)
    monkeypatch.setattr(rtl_loop, "on_rtl", fails)
    assert rtl_loop.main(["leaf"]) == 1
    assert "leaf: building npu_tb failed." in capsys.readouterr().out


def test_failed_unit_tests_end_the_loop_and_what_follows_is_named(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(places, monkeypatch, 1)
    assert rtl_loop.main(["leaf"]) == 1
    assert "vectors and layers, until leaf's unit tests pass" in capsys.readouterr().out
